//! Whether the description names what an iteration touches.
use super::{Findings, all_points, elements, iteration};
use crate::view::Touch;
use hectare_dependence::loop_nest::{Access, Affine, LoopNest, Subscript};
use std::ops::Range;

/// Values of the inner variables that are tried one by one; beyond, their bounds are used.
const TRIED: usize = 4096;
/// Elements of a touched box that are looked at one by one when no access names all of it.
const LOOKED_AT: usize = 1 << 16;

/// The description of a loop, asked iteration by iteration.
pub(crate) struct Covers<'a> {
    nest: &'a LoopNest,
    /// All values of the inner variables, or none if they are too many or unknown.
    inner: Option<Vec<Vec<i64>>>,
}

impl<'a> Covers<'a> {
    pub(crate) fn new(nest: &'a LoopNest) -> Covers<'a> {
        let mut inner = Some(vec![Vec::new()]);
        for variable in &nest.inner {
            inner = inner.zip(variable.bounds).and_then(|(known, (start, end))| {
                let extent = usize::try_from(end.saturating_sub(start).max(0)).ok()?;
                (known.len().checked_mul(extent)? <= TRIED).then(|| {
                    let longer = |values: &Vec<i64>, value| values.iter().copied().chain([value]).collect();
                    known.iter().flat_map(|values| (start..end).map(move |v| longer(values, v))).collect()
                })
            });
        }
        Covers { nest, inner }
    }

    /// PassTrace what is touched in iteration `index` and not named.
    pub(crate) fn check(&self, index: &[i64], touches: &[Touch], findings: &mut Findings) {
        for touch in touches {
            let boxes: Vec<Vec<Range<usize>>> = self
                .nest
                .accesses
                .iter()
                .filter(|access| access.array == touch.array)
                .filter(|access| if touch.writes { access.mode.writes() } else { access.mode.reads() })
                .flat_map(|access| self.boxes(access, index))
                .collect();
            if self.is_named(touch, &boxes) {
                continue;
            }
            let kind = if touch.writes { "writes" } else { "reads" };
            findings.add(kind, touch.array, || {
                let nest = self.nest;
                let named: Vec<&str> =
                    nest.accesses_of(touch.array).map(|access| access.text.as_str()).collect();
                format!(
                    "iteration {} {kind} {}, which the description does not name (of {} it names: {})",
                    iteration(nest, index),
                    elements(nest, touch.array, &touch.elements),
                    nest.arrays[touch.array].name,
                    if named.is_empty() { "nothing".into() } else { named.join(", ") }
                )
            });
        }
    }

    fn is_named(&self, touch: &Touch, boxes: &[Vec<Range<usize>>]) -> bool {
        let within = |outer: &Vec<Range<usize>>, inner: &[Range<usize>]| {
            outer.iter().zip(inner).all(|(outer, inner)| outer.start <= inner.start && inner.end <= outer.end)
        };
        let count = touch.elements.iter().map(Range::len).try_fold(1, usize::checked_mul);
        if count == Some(0) || boxes.iter().any(|named| within(named, &touch.elements)) {
            return true;
        }
        count.is_some_and(|count| count > 1 && count <= LOOKED_AT)
            && all_points(&touch.elements, |point| {
                let point: Vec<Range<usize>> = point.iter().map(|at| *at..at + 1).collect();
                boxes.iter().any(|named| within(named, &point))
            })
    }

    /// The elements that an access names in an iteration, one box for each value of the inner variables.
    fn boxes(&self, access: &Access, index: &[i64]) -> Vec<Vec<Range<usize>>> {
        let dims = self.nest.dims.len();
        let is_inner = |form: &Affine| form.coefficients.iter().skip(dims).any(|factor| *factor != 0);
        let varies = access.subscripts.iter().any(|subscript| match subscript {
            Subscript::Index(form) => is_inner(form),
            Subscript::Range(from, to) => is_inner(from) || is_inner(to),
            Subscript::Full | Subscript::Unknown => false,
        });
        let shape = &self.nest.arrays[access.array].shape;
        let at = |inner: &[i64]| {
            let variables: Vec<i64> = index.iter().chain(inner).copied().collect();
            let ranges = access.subscripts.iter().zip(shape).map(|(subscript, extent)| match subscript {
                Subscript::Index(form) => clip(form.eval(&variables), form.eval(&variables), 1),
                Subscript::Range(from, to) => clip(from.eval(&variables), to.eval(&variables), 0),
                Subscript::Full | Subscript::Unknown => 0..*extent,
            });
            ranges.collect()
        };
        match &self.inner {
            _ if !varies => vec![at(&[])],
            Some(values) => values.iter().map(|inner| at(inner)).collect(),
            // Too many: all that the variable could name.
            None => vec![
                access
                    .subscripts
                    .iter()
                    .zip(shape)
                    .map(|(subscript, extent)| match subscript {
                        Subscript::Index(form) if !is_inner(form) => {
                            clip(form.eval(index), form.eval(index), 1)
                        }
                        _ => 0..*extent,
                    })
                    .collect(),
            ],
        }
    }
}

/// `from..to + more`, without what is no index.
fn clip(from: Option<i64>, to: Option<i64>, more: i64) -> Range<usize> {
    let end = to.and_then(|to| to.checked_add(more));
    match (from, end) {
        (Some(from), Some(end)) => from.max(0) as usize..end.max(0) as usize,
        _ => 0..0,
    }
}
