//! The conditions under which two accesses touch the same element.
use super::difference::{Bounds, Difference};
use super::linear::Row;
use super::mutant::{self, Mutant};
use crate::loop_nest::{Affine, LoopNest, LoopVar, Space, Subscript};

/// Conditions on integer variables: first the distances, then the index of the source iteration (the sink's is the
/// sum of both), then the inner variables that the source names, then those that the sink names. Each access has
/// inner variables of its own, since one iteration runs through all their values.
#[derive(Debug)]
pub(super) struct System {
    /// Dimensions of the nest.
    pub(super) dims: usize,
    pub(super) variables: usize,
    /// These are 0.
    pub(super) zero: Vec<Row>,
    /// These are at least 0.
    pub(super) nonnegative: Vec<Row>,
    /// The quick tests: where one of these cannot be 0, there is no solution.
    pub(super) differences: Vec<Difference>,
    /// Whether something was left out because it is not affine, or too large.
    pub(super) assumed: bool,
    /// Whether two different iterations can have the same index.
    pub(super) reflexive: bool,
}

/// Factors above this, or indices that do not fit 64 bits, are taken for unknown: the loop itself might wrap.
const FACTOR_LIMIT: u64 = 1 << 31;
/// Constants above this are taken for unknown.
const CONSTANT_LIMIT: u64 = 1 << 62;

/// The values of a variable, `None` if they are not known, `Some(None)` if there are none.
pub(super) fn values(variable: &LoopVar) -> Option<Option<(i128, i128)>> {
    let (start, end) = variable.bounds?;
    Some((start < end).then(|| (i128::from(start), i128::from(end) - 1)))
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Source,
    Sink,
}

struct Builder<'n> {
    nest: &'n LoopNest,
    /// Where the inner variables of source and sink are in the system, if they are.
    inner: [Vec<Option<usize>>; 2],
    variables: usize,
}

impl System {
    /// The conditions for two accesses to one array; `None` if one of them never happens. The dimensions of the nest
    /// are not empty.
    pub(super) fn of(nest: &LoopNest, source: &[Subscript], sink: &[Subscript]) -> Option<System> {
        let dims = nest.dims.len();
        let mut builder = Builder { nest, inner: [Vec::new(), Vec::new()], variables: 2 * dims };
        builder.add_inner(Side::Source, source);
        builder.add_inner(Side::Sink, sink);
        let mut system = System {
            dims,
            variables: builder.variables,
            zero: Vec::new(),
            nonnegative: Vec::new(),
            differences: Vec::new(),
            assumed: false,
            reflexive: nest.space != Space::Dense && !mutant::is(Mutant::DistinctEntries),
        };
        system.add_bounds(&builder)?;
        let subscripts = source.iter().zip(sink);
        for (a, b) in subscripts.take(if mutant::is(Mutant::FirstSubscript) { 1 } else { usize::MAX }) {
            system.add_subscript(&builder, a, b);
        }
        Some(system)
    }

    fn add_bounds(&mut self, builder: &Builder<'_>) -> Option<()> {
        let (n, dims) = (self.variables, self.dims);
        let mut inside = |(first, last): (i128, i128), variable: &Row| {
            self.nonnegative.push(Row { constant: variable.constant - first, ..variable.clone() });
            let negated = variable.coefficients.iter().map(|c| -c).collect();
            self.nonnegative.push(Row { constant: last - variable.constant, coefficients: negated });
        };
        for (k, variable) in builder.nest.dims.iter().enumerate() {
            let Some(values) = values(variable) else { continue };
            let (first, mut last) = values?;
            if mutant::is(Mutant::NoBounds) {
                continue;
            }
            last -= i128::from(mutant::is(Mutant::TightBound));
            let mut row = Row::single(0, 1, dims + k, n);
            inside((first, last), &row);
            row.coefficients[k] = 1;
            inside((first, last), &row);
        }
        for (side, k, variable) in builder.inner_variables() {
            if let Some(values) = values(&builder.nest.inner[k]) {
                if side == Side::Sink && mutant::is(Mutant::SharedInner) {
                    continue;
                }
                inside(values?, &Row::single(0, 1, variable, n));
            }
        }
        Some(())
    }

    /// Both subscripts name a common index.
    fn add_subscript(&mut self, builder: &Builder<'_>, source: &Subscript, sink: &Subscript) {
        let usable = |subscript: &Subscript| match subscript {
            Subscript::Index(index) => builder.is_usable(index),
            Subscript::Range(start, end) => builder.is_usable(start) && builder.is_usable(end),
            Subscript::Full => true,
            Subscript::Unknown => mutant::is(Mutant::KnownUnknown),
        };
        if !usable(source) || !usable(sink) {
            self.assumed = true;
            return;
        }
        if let (Subscript::Index(a), Subscript::Index(b)) = (source, sink) {
            let (a, b) = (builder.row(Side::Source, a), builder.row(Side::Sink, b));
            if let Some(row) = b.combine(1, &a, -1) {
                self.differences.push(builder.difference(&row, &a, &b));
                self.zero.push(row);
                return;
            }
        }
        // Intervals of integers, first to end - 1: two of them meet if neither is empty and neither ends before the
        // other begins.
        let (a, b) = (builder.interval(Side::Source, source), builder.interval(Side::Sink, sink));
        let intervals = [&a, &b].map(|interval| interval.as_ref());
        for (first, end) in intervals.into_iter().flat_map(|x| intervals.map(|y| (x, y))) {
            let (Some((first, _)), Some((_, end))) = (first, end) else { continue };
            match end.combine(1, first, -1) {
                Some(mut row) => {
                    row.constant -= 1 + i128::from(mutant::is(Mutant::ShortRange));
                    self.nonnegative.push(row);
                }
                None => self.assumed = true,
            }
        }
        if let (true, Some((a, _)), Some((b, _))) = (mutant::is(Mutant::RangeStart), a, b) {
            self.zero.extend(a.combine(1, &b, -1));
        }
    }
}

impl Builder<'_> {
    /// Gives a place to the inner variables that an access names. Only those: an access may stand outside of the
    /// loop over the others.
    fn add_inner(&mut self, side: Side, subscripts: &[Subscript]) {
        let dims = self.nest.dims.len();
        for k in 0..self.nest.inner.len() {
            let named = subscripts.iter().any(|subscript| match subscript {
                Subscript::Index(index) => index.coefficient(dims + k) != 0,
                Subscript::Range(a, b) => a.coefficient(dims + k) != 0 || b.coefficient(dims + k) != 0,
                Subscript::Full | Subscript::Unknown => false,
            });
            let shared = match (mutant::is(Mutant::SharedInner), side) {
                (true, Side::Sink) => self.inner[0][k],
                _ => None,
            };
            let place = shared.or_else(|| named.then_some(self.variables));
            self.variables += usize::from(place == Some(self.variables));
            self.inner[side as usize].push(place);
        }
    }

    /// The inner variables of both sides: the side, which one, and its place in the system.
    fn inner_variables(&self) -> impl Iterator<Item = (Side, usize, usize)> {
        [Side::Source, Side::Sink].into_iter().flat_map(|side| {
            let places = self.inner[side as usize].iter().enumerate();
            places.filter_map(move |(k, place)| place.map(|place| (side, k, place)))
        })
    }

    /// Whether the loop surely computes the form without wrapping, and all its variables exist. Variables without
    /// bounds are trusted to be such that it does.
    fn is_usable(&self, affine: &Affine) -> bool {
        let count = self.nest.dims.len() + self.nest.inner.len();
        let mut reach = u128::from(affine.constant.unsigned_abs());
        for (k, factor) in affine.coefficients.iter().enumerate().filter(|(_, factor)| **factor != 0) {
            if k >= count || factor.unsigned_abs() > FACTOR_LIMIT {
                return false;
            }
            if let Some((start, end)) = self.nest.variable(k).bounds {
                let largest = start.unsigned_abs().max(end.unsigned_abs());
                reach += u128::from(factor.unsigned_abs()) * u128::from(largest);
            }
        }
        affine.constant.unsigned_abs() <= CONSTANT_LIMIT && reach <= i64::MAX as u128
    }

    /// A form over the variables of one side, as a form over those of the system.
    fn row(&self, side: Side, affine: &Affine) -> Row {
        let dims = self.nest.dims.len();
        let mut row = Row::constant(i128::from(affine.constant), self.variables);
        for (k, factor) in affine.coefficients.iter().enumerate().filter(|(_, factor)| **factor != 0) {
            let mut factor = i128::from(*factor);
            if side == Side::Sink && mutant::is(Mutant::FlippedSign) {
                factor = factor.abs();
            }
            match (k.checked_sub(dims), side) {
                (None, Side::Source) => row.coefficients[dims + k] = factor,
                (None, Side::Sink) => (row.coefficients[dims + k], row.coefficients[k]) = (factor, factor),
                (Some(inner), side) => {
                    let place = self.inner[side as usize][inner];
                    row.coefficients[place.expect("a variable that is named has a place")] = factor;
                }
            }
        }
        row
    }

    /// The first index and the one after the last that a subscript names; `None` if it names all or any.
    fn interval(&self, side: Side, subscript: &Subscript) -> Option<(Row, Row)> {
        match subscript {
            Subscript::Index(index) => {
                let first = self.row(side, index);
                Some((first.clone(), Row { constant: first.constant + 1, ..first }))
            }
            Subscript::Range(start, end) => Some((self.row(side, start), self.row(side, end))),
            Subscript::Full | Subscript::Unknown => None,
        }
    }

    /// The difference of two indices, for the quick tests.
    fn difference(&self, row: &Row, source: &Row, sink: &Row) -> Difference {
        let dims = self.nest.dims.iter().enumerate().map(|(k, variable)| {
            let k = self.nest.dims.len() + k;
            (source.coefficients[k], sink.coefficients[k], bounds(variable))
        });
        let inner = self.inner_variables();
        let inner = inner.map(|(_, k, place)| (row.coefficients[place], bounds(&self.nest.inner[k])));
        Difference { constant: row.constant, dims: dims.collect(), inner: inner.collect() }
    }
}

fn bounds(variable: &LoopVar) -> Bounds {
    values(variable).flatten().filter(|_| !mutant::is(Mutant::NoBounds))
}
