//! Runs a case and logs what ran when.
use super::arrays::{Arguments, Array, Named, Seen};
use super::body::{iterate, name};
use super::case::{Case, LoopSpec, SpaceSpec, dense_id, initial, mix};
use hectare_orion::accumulate::{Accumulator, Fold, Min, Sum, read_one, write_one};
use hectare_orion::execute::{IterationSpace, LoopHead, Of, Pieces, Ranges, SlicePieces, entry_parts};
use hectare_orion::loop_nest::LoopNest;
use hectare_orion::relax::Relaxation;
use hectare_orion::schedule::Schedule;
use hectare_orion::{Context, Result, Site, SparseArray};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// One iteration as it ran: the clock stood at `start` before and at `end` after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub index: Vec<i64>,
    pub id: u64,
    pub start: u64,
    pub end: u64,
    pub worker: u32,
}

/// Sum of the mixes, sum and least of floats, and a product that does not commute; floats as bits.
pub type Sums = (u64, u64, u64, u64);

/// One pass as one worker saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    pub ran: Vec<Ran>,
    /// Whether its product was to be that of the iterations in their order.
    pub in_order: bool,
    pub sums: Sums,
    /// All elements afterwards.
    pub arrays: Vec<Vec<u64>>,
}

/// The iterations of a space on one worker: chunks, taken apart.
pub trait Iterations: IterationSpace {
    fn each(chunk: Of<'_, Self::Chunks>, visit: impl FnMut(&[i64], u64));
}

impl<const D: usize> Iterations for Ranges<D> {
    fn each(chunk: [std::ops::Range<usize>; D], mut visit: impl FnMut(&[i64], u64)) {
        let mut index: Vec<i64> = chunk.iter().map(|range| range.start as i64).collect();
        if chunk.iter().any(|range| range.is_empty()) {
            return;
        }
        loop {
            visit(&index, dense_id(&index));
            let mut dim = D;
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                index[dim] += 1;
                if index[dim] < chunk[dim].end as i64 {
                    break;
                }
                index[dim] = chunk[dim].start as i64;
            }
        }
    }
}

impl<const D: usize> Iterations for SparseArray<u64, D> {
    fn each(chunk: Of<'_, Self::Chunks>, mut visit: impl FnMut(&[i64], u64)) {
        for entry in chunk {
            let (key, id) = entry_parts(entry);
            visit(&key.map(|key| key as i64), *id);
        }
    }
}

/// Options of a run, besides the case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// A schedule of one's own for every loop.
    pub schedule: Option<&'a (dyn Schedule + Sync)>,
    /// Iterations give up their core between reading and writing, so that wrong overlaps come to light.
    pub slow: bool,
}

/// Makes the arrays of a case, runs all its passes, deletes the arrays; collective.
pub fn run_case(
    context: &mut Context<'_>,
    case: &Case,
    clock: &AtomicU64,
    options: Options<'_>,
) -> Result<Vec<Pass>> {
    let mut arrays = Vec::new();
    for (number, shape) in case.shapes.iter().enumerate() {
        arrays.push(Array::make(context, shape, |place| initial(number, place))?);
    }
    let mut runner = Runner { case, clock, options, arrays };
    let passes = match &case.space {
        SpaceSpec::Dense(ranges) => match ranges.as_slice() {
            [a] => runner.passes(context, &Ranges([a.clone()])),
            [a, b] => runner.passes(context, &Ranges([a.clone(), b.clone()])),
            [a, b, c] => runner.passes(context, &Ranges([a.clone(), b.clone(), c.clone()])),
            _ => panic!("a space of one to three dimensions"),
        },
        SpaceSpec::Entries { shape, keys } => match *shape.as_slice() {
            [a] => runner.sparse(context, [a], keys),
            [a, b] => runner.sparse(context, [a, b], keys),
            [a, b, c] => runner.sparse(context, [a, b, c], keys),
            _ => panic!("a space of one to three dimensions"),
        },
    }?;
    runner.arrays.into_iter().try_for_each(|array| array.delete(context))?;
    Ok(passes)
}

struct Runner<'r> {
    case: &'r Case,
    clock: &'r AtomicU64,
    options: Options<'r>,
    arrays: Vec<Array>,
}

impl Runner<'_> {
    fn sparse<const D: usize>(
        &mut self,
        context: &mut Context<'_>,
        shape: [usize; D],
        keys: &[Vec<usize>],
    ) -> Result<Vec<Pass>> {
        let entries = context
            .entries(shape, keys.len(), |k| (std::array::from_fn(|dim| keys[k][dim]), k as u64))?
            .named("entries");
        self.passes(context, &entries)
    }

    fn passes<S: Iterations>(&mut self, context: &mut Context<'_>, space: &S) -> Result<Vec<Pass>> {
        self.case.passes.iter().map(|number| self.pass(context, space, *number)).collect()
    }

    fn pass<S: Iterations>(&mut self, context: &mut Context<'_>, space: &S, number: usize) -> Result<Pass> {
        let (case, clock, slow) = (self.case, self.clock, self.options.slow);
        let spec = &case.loops[number];
        let written = (0..self.arrays.len()).map(|array| spec.writes(array));
        let arguments = Arguments(self.arrays.iter_mut().zip(written).map(|(a, w)| a.argument(w)).collect());
        let names = ["a", "b", "c"];
        let head = LoopHead {
            site: Site::here(),
            order: spec.order,
            variables: &["i", "j", "k"][..case.space.dims()],
            arrays: &names[..case.shapes.len()],
            // All loops stand at one place: what tells them apart is this.
            invariants: &[number as i64],
            captured: &[],
            schedule: self.options.schedule.map(|schedule| schedule as &dyn Schedule),
            relax: Relaxation::default(),
        };
        let log = RefCell::new(Vec::new());
        // Each fourth loop says that its product does not commute: if it is ordered, fewer schedules are right.
        let in_order = head.schedule.is_none() && case.combines_in_order(number);
        let body = body::<S>(case, spec, (clock, slow, context.rank()), &log);
        let describe = |nest: &mut LoopNest| spec.describe(nest);
        macro_rules! run {
            ($product:expr) => {{
                let accumulators = (Sum::<u64>::new(), Sum::<f64>::new(), Min::<f64>::new(), $product);
                match spec.inspected {
                    false => context.run_loop(&head, space, arguments, accumulators, &describe, body),
                    true => {
                        let (slice, body) = (slice::<S>(case, spec), pieces::<S>(body));
                        context.run_served(
                            &head,
                            space,
                            arguments,
                            accumulators,
                            &describe,
                            Some(0),
                            slice,
                            body,
                        )
                    }
                }
            }};
        }
        let sums = if in_order { run!(Fold(ONE, then)) } else { run!(AnyOrder) }?;
        let sums = (sums.0, sums.1.to_bits(), sums.2.to_bits(), sums.3);
        let arrays = self.arrays.iter().map(|array| array.to_vec(context)).collect::<Result<_>>()?;
        Ok(Pass { ran: log.into_inner(), in_order, sums, arrays })
    }
}

/// The body of a loop, which logs what runs when.
fn body<'r, S: Iterations>(
    case: &'r Case,
    spec: &'r LoopSpec,
    (clock, slow, worker): (&'r AtomicU64, bool, u32),
    log: &'r RefCell<Vec<Ran>>,
) -> impl for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Vec<Seen<'a>>) -> (u64, f64, f64, u64) + 'r {
    move |chunk, seen| {
        let mut sums = (0u64, 0.0f64, f64::INFINITY, ONE);
        S::each(chunk, |index, id| {
            // SeqCst: all workers' stamps are in one order, and a stamp is neither before what the iteration reads nor
            // after what it writes.
            let start = clock.fetch_add(1, SeqCst);
            if slow {
                std::thread::yield_now();
            }
            let hash = iterate(&case.shapes, spec, index, id, seen);
            let end = clock.fetch_add(1, SeqCst);
            log.borrow_mut().push(Ran { index: index.to_vec(), id, start, end, worker });
            let add = addends(id);
            sums = (sums.0.wrapping_add(hash), sums.1 + add.0, sums.2.min(add.0), then(sums.3, add.1));
        });
        sums
    }
}

/// That body of several pieces.
fn pieces<'r, S: Iterations>(
    body: impl for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Vec<Seen<'a>>) -> (u64, f64, f64, u64) + 'r,
) -> impl for<'a, 'b> Fn(Pieces<'a, S>, &'b mut Vec<Seen<'a>>) -> (u64, f64, f64, u64) + 'r {
    move |pieces, seen| {
        pieces.fold((0u64, 0.0f64, f64::INFINITY, ONE), |sums, piece| {
            let new = body(piece, seen);
            (sums.0.wrapping_add(new.0), sums.1 + new.1, sums.2.min(new.2), then(sums.3, new.3))
        })
    }
}

/// The slice of that body.
fn slice<'r, S: Iterations>(
    case: &'r Case,
    spec: &'r LoopSpec,
) -> impl for<'a, 'b, 'c> Fn(SlicePieces<'a, S>, &'b mut Vec<Named<'c>>) + 'r {
    move |pieces, named| {
        pieces.for_each(|chunk| S::each(chunk, |index, id| name(&case.shapes, spec, index, id, named)))
    }
}

/// The values that an iteration adds to accumulators that do not depend on the arrays: a float of any size, and a map.
fn addends(id: u64) -> (f64, u64) {
    let bits = mix(7, id);
    let float = ((bits >> 11) as f64 - 4.5e15) * [1e-9, 1.0, 1e-3, 1e7][bits as usize % 4];
    (float, bits | 1 << 32)
}

/// The product of maps, of which the loop is told that it commutes: it is the same for every number of workers all the same.
struct AnyOrder;

impl Accumulator for AnyOrder {
    type Value = u64;

    const COMMUTES: bool = true;

    fn identity(&self) -> u64 {
        ONE
    }

    fn combine(&self, first: u64, second: u64) -> u64 {
        then(first, second)
    }

    fn write(&self, value: &u64, bytes: &mut Vec<u8>) {
        write_one(value, bytes);
    }

    fn read(&self, bytes: &mut &[u8]) -> Option<u64> {
        read_one(bytes)
    }
}

/// The product of the maps of iterations in this order.
pub fn product<'r>(ran: impl IntoIterator<Item = &'r Ran>) -> u64 {
    ran.into_iter().fold(ONE, |product, ran| then(product, addends(ran.id).1))
}

/// The map that changes nothing: x -> 1 * x + 0.
const ONE: u64 = 1 << 32;

/// First one map x -> a * x + b (a in the upper half, b in the lower), then another: associative, not commutative.
fn then(first: u64, second: u64) -> u64 {
    let half = |x: u64| ((x >> 32) as u32, x as u32);
    let ((a, b), (c, d)) = (half(first), half(second));
    let (a, b) = (a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d));
    u64::from(a) << 32 | u64::from(b)
}
