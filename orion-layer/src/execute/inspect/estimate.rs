//! How long batches take, by estimates that compare: constants were fitted on one machine.
use super::super::inspection::{Inspected, percent};
use crate::text::time;
use hectare_dependence::hosts::Hosts;
use hectare_dependence::inspect::{Growth, Pace, Touched};
use hectare_dependence::loop_nest::{LoopNest, NamedArray};
use hectare_dsm::tasks::Touched as TouchedRows;

/// Bytes of rows that a core gets through in a nanosecond.
const BYTES_PER_NS: f64 = 16.0;

/// Time of an iteration, without its rows.
const ITERATION_NS: f64 = 5.0;

/// Time that it takes longer in a batch, as batches run lists of iterations.
const OVERHEAD_NS: f64 = 3.0;

/// Batches run if they take less than this fraction of the serial loop's time.
const PAYS: f64 = 0.9;

/// Whether batches are to run, by what they and the serial loop take.
pub(super) fn pays(batches_ns: f64, serial_ns: f64) -> bool {
    batches_ns < PAYS * serial_ns
}

/// From one batch to the next.
const BATCH_NS: f64 = 1_500.0;

/// To get at a row that another worker has used, besides its bytes.
const MOVED_NS: f64 = 50.0;

/// Bytes of a row that the loop writes: all are held to be as long as the mean of the arrays'.
pub(super) fn row_bytes(nest: &LoopNest) -> f64 {
    let written = nest.arrays.iter().enumerate().filter(|(array, _)| nest.is_written(*array));
    let bytes = written.map(|(_, array)| {
        let row = if array.shape.len() > 1 { array.shape[array.shape.len() - 1] } else { 1 };
        (row * array.element_bytes) as f64
    });
    let bytes: Vec<f64> = bytes.collect();
    bytes.iter().sum::<f64>() / bytes.len().max(1) as f64
}

/// How long iterations take, by the bytes of the rows that they touch.
pub(super) fn pace(row_bytes: f64, touched: &Touched) -> Pace {
    let each = touched.accesses() as f64 / touched.len().max(1) as f64;
    let iteration_ns = ITERATION_NS + each * row_bytes / BYTES_PER_NS;
    Pace { iteration_ns, overhead_ns: OVERHEAD_NS, batch_ns: BATCH_NS }
}

/// How often rows are used by another worker than before, by lists that may name more than iterations use, if `uses` says how often
/// each row is used.
pub(super) fn moved(
    touched: &Touched,
    of_rows: &[Vec<TouchedRows>],
    batches: usize,
    uses: Option<&[u32]>,
) -> usize {
    let mut moved = 0;
    for (array, rows) in touched.arrays().enumerate() {
        let mut last = vec![(u32::MAX, 0u32); rows.len()];
        for batch in 0..batches {
            for (worker, lists) in (0u32..).zip(of_rows) {
                for row in lists[array].writes.of(batch) {
                    let (before, times) = &mut last[*row as usize];
                    *times += u32::from(*before != worker && *before != u32::MAX);
                    *before = worker;
                }
            }
        }
        // Once less than it is used, at most.
        let most = |row: usize| uses.map_or(u32::MAX, |uses| uses[row].saturating_sub(1));
        moved += rows.zip(&last).map(|(row, (_, times))| most(row).min(*times) as usize).sum::<usize>();
    }
    moved
}

/// The time of moving rows between workers' caches: `moves` times, divided among the workers.
pub(super) fn moved_ns(moves: usize, workers: usize, row_bytes: f64) -> f64 {
    moves as f64 / workers as f64 * (MOVED_NS + row_bytes / BYTES_PER_NS)
}

/// The time that workers of several hosts take longer: a way for each batch, rows that go to a worker of another host, and what the
/// other hosts get before the first batch and give back after the last.
pub(super) fn between_hosts_ns(
    hosts: &Hosts,
    batches: usize,
    moves: usize,
    nest: &LoopNest,
    row_bytes: f64,
) -> f64 {
    let written = nest.arrays.iter().enumerate().filter(|(array, _)| nest.is_written(*array));
    let bytes = |(_, array): (usize, &NamedArray)| {
        (array.shape.iter().product::<usize>() * array.element_bytes) as f64
    };
    let elsewhere = 1.0 - 1.0 / hosts.count() as f64;
    let crossing = moves as f64 * elsewhere * row_bytes / hosts.count() as f64;
    let whole = 2.0 * elsewhere * written.map(bytes).sum::<f64>();
    batches as f64 * hosts.link.barrier_ns + (crossing + whole) / hosts.link.bytes_per_ns
}

/// Why no batches pay, in figures.
pub(super) fn why_serial(said: &Inspected, team: usize) -> String {
    let alone = |one: &Growth| one.largest * one.batch as f64 <= 1.0;
    let first = match (said.growth.first(), said.growth.last()) {
        (_, Some(last)) if last.batch == said.iterations && alone(last) => {
            "no two of its iterations conflict; ".to_owned()
        }
        (Some(first), Some(last)) if first.batch < last.batch => format!(
            "{} of a batch of {} iterations is one component, and {} of one of {}; ",
            percent(first.largest),
            first.batch,
            percent(last.largest),
            last.batch
        ),
        (Some(one), _) => {
            format!("{} of a batch of {} iterations is one component; ", percent(one.largest), one.batch)
        }
        _ => String::new(),
    };
    let best = said.tried.first().map(|best| {
        format!(
            "the best of what was tried, {}, would take {} on {team} workers, and one worker takes {}",
            best.kind,
            time(best.nanoseconds),
            time(said.serial_ns)
        )
    });
    let none = || format!("no batches would take less than the {} of one worker", time(said.serial_ns));
    format!("{first}{}", best.unwrap_or_else(none))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_dependence::inspect::{Key, Kind, choose};
    use hectare_dependence::loop_nest::Order;

    /// Iterations that touch a row of each of two arrays, as matrix factorization does.
    fn ratings(count: usize) -> Touched {
        let mut touched = Touched::new(&[600, 400]).expect("few rows");
        for at in 0..count {
            touched.note(Key::new(at * 7919 % 599, true));
            touched.note(Key::new(600 + at * 104_729 % 397, true));
            touched.end_iteration().expect("few iterations");
        }
        touched
    }

    /// Nanoseconds of the serial loop and of what is tried first, and what is tried; `moves`: how often rows change hands, of two
    /// workers.
    fn estimated(order: Order, rank: usize, moves: usize) -> (f64, f64, Kind) {
        let (touched, row_bytes) = (ratings(200_000), rank as f64 * 4.0);
        let found = choose(&touched, order, 2, pace(row_bytes, &touched));
        let first = found.tried[0];
        (found.serial_ns, first.nanoseconds + moved_ns(moves, 2, row_bytes), first.kind)
    }

    #[test]
    fn blocks_are_taken_where_they_were_measured_to_be_faster() {
        // Milliseconds of MovieLens-1M's 899,742 ratings on an EPYC of 2023: the layer's serial loop, and two workers in blocks.
        for (rank, serial, blocks) in [(16, 12.0, 7.3), (32, 19.3, 10.9), (100, 51.3, 28.7)] {
            let (serial_ns, blocks_ns, kind) = estimated(Order::Unordered, rank, 1_000);
            assert_eq!(kind, Kind::Ranges(2));
            assert!(pays(blocks_ns, serial_ns), "rank {rank}");
            let off = (serial_ns / blocks_ns) / (serial / blocks);
            assert!((0.85..1.15).contains(&off), "rank {rank}: {off} of what was measured");
        }
    }

    #[test]
    fn components_of_short_rows_that_change_hands_are_not_taken() {
        // One use of a row in four is by another worker, as of random ratings.
        let moves = 2 * 200_000 / 4;
        let batches = |rank: usize| {
            let (serial_ns, batches_ns, _) = estimated(Order::Ordered, rank, moves);
            pays(batches_ns, serial_ns)
        };
        assert!(!batches(4) && !batches(16) && !batches(32));
        assert!(batches(256));
    }

    #[test]
    fn a_row_moves_no_more_often_than_it_is_used_again() {
        // One row, listed in turns by two workers in five batches.
        let turns = |own: usize| TouchedRows {
            writes: (0..5).map(|batch| if batch % 2 == own { vec![0u32] } else { vec![] }).collect(),
            reads: [[]; 5].iter().map(|none: &[u32; 0]| none).collect(),
        };
        let (touched, lists) = (Touched::new(&[1]).expect("a row"), [vec![turns(0)], vec![turns(1)]]);
        let moved = |uses: Option<&[u32]>| super::moved(&touched, &lists, 5, uses);
        assert_eq!(
            [None, Some(9), Some(3), Some(1), Some(0)]
                .map(|uses| moved(uses.map(|uses| [uses]).as_ref().map(|uses| &uses[..]))),
            [4, 4, 2, 0, 0]
        );
    }

    #[test]
    fn less_than_a_tenth_does_not_pay() {
        assert!(pays(89.0, 100.0) && !pays(91.0, 100.0) && !pays(110.0, 100.0) && !pays(f64::NAN, 100.0));
    }
}
