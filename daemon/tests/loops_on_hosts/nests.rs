//! Random loops, of which arrays and sums are compared with those of as many threads of one host.
use super::oracle;
use hectare_orion::loop_nest::Order;
use hectare_orion::schedule::Schedule;
use hectare_orion::{Context, Error, Result};
use oracle::oracle::{any_wavefront, case_of, way};
use oracle::random::Random;
use oracle::running::{Options, Pass, run_case};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

fn bits(pass: &Pass, with_sums: bool) -> u64 {
    let (a, b, c, d) = pass.sums;
    let sums = [a, b, c, d].into_iter().filter(|_| with_sums);
    super::hash(sums.chain(pass.arrays.iter().flatten().copied()))
}

/// A line for each pass: what it leaves, behind what decides it. Where the order of iterations is given, that is the case alone, and else
/// the ways in which the loops run, too. A fifth of the cases has a wavefront of its own, which may be refused. A loop over data need not
/// run in the batches that it has on one host: if the order is given, its arrays are compared and not its sums, and else nothing is.
pub(super) fn all(w: &mut Context<'_>, seeds: Range<u64>) -> Result<Vec<String>> {
    let (clock, mut lines) = (AtomicU64::new(0), Vec::new());
    for seed in seeds {
        let case = case_of(seed);
        let before = w.explain();
        let mut random = Random(seed);
        let (wavefront, is_forced) = (any_wavefront(&mut random), random.percent(20));
        let schedule = is_forced.then_some(&wavefront as &(dyn Schedule + Sync));
        let passes = match run_case(w, &case, &clock, Options { schedule, slow: false }) {
            Err(Error::InvalidSchedule { what, .. }) if is_forced => {
                lines.push(format!("{seed} refused: {what:?}"));
                continue;
            }
            passes => passes?,
        };
        let ways: Vec<String> = w.explain().iter().filter(|one| !before.contains(one)).map(way).collect();
        let (is_inspected, mut is_given) =
            (case.loops.iter().any(|one| one.inspected), case.space.has_distinct_keys());
        for (number, (pass, which)) in passes.iter().zip(&case.passes).enumerate() {
            is_given &= case.loops[*which].order == Order::Ordered;
            let place = match is_given {
                true => "in order".to_owned(),
                false if is_inspected => continue,
                false => ways.join(", "),
            };
            lines.push(format!("{seed}.{number} {place}: {:x}", bits(pass, !is_inspected)));
        }
    }
    Ok(lines)
}
