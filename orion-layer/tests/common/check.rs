//! Checks that hold of every run.
use super::case::{Case, LoopSpec};
use super::replay::{Memory, initial_memory, step, touched};
use super::running::{Pass, Ran, product};
use hectare_orion::loop_nest::Order;
use std::collections::BTreeMap;

/// Checks the passes of all workers: each iteration once, conflicting ones not at the same time and, in an ordered
/// loop, in order; what they left is what they leave when replayed one by one in the order of the log.
pub fn check(case: &Case, workers: &[Vec<Pass>]) -> Result<(), String> {
    let mut memory = initial_memory(case);
    let mut serial = memory.clone();
    let mut unordered_before = false;
    let mut clock = 0;
    for (number, which) in case.passes.iter().enumerate() {
        let spec = &case.loops[*which];
        let complain = |what: String| format!("case {}, pass {number} (loop {which}): {what}", case.seed);
        let mut ran: Vec<Ran> = workers.iter().flat_map(|passes| passes[number].ran.clone()).collect();
        ran.sort_by_key(|ran| ran.start);
        if ran.first().is_some_and(|ran| ran.start < clock) {
            return Err(complain("iterations ran before those of the pass before it had ended".into()));
        }
        clock = ran.iter().map(|ran| ran.end).max().unwrap_or(clock);
        once_each(case, &ran).map_err(complain)?;
        alone(case, spec, &ran).map_err(complain)?;
        let sum = replay(case, spec, &ran, &mut memory);
        for (worker, passes) in workers.iter().enumerate() {
            let pass = &passes[number];
            if let Some(array) = (0..memory.len()).find(|array| pass.arrays[*array] != memory[*array]) {
                let at = (0..memory[array].len()).find(|at| pass.arrays[array][*at] != memory[array][*at]);
                return Err(complain(format!("worker {worker}: array {array} differs at {at:?}")));
            }
            if pass.sums.0 != sum {
                return Err(complain(format!("worker {worker}: the sum is {}, not {sum}", pass.sums.0)));
            }
            if pass.sums != workers[0][number].sums {
                return Err(complain(format!("worker {worker} has other sums than worker 0")));
            }
        }
        unordered_before |= spec.order == Order::Unordered;
        // Entries with one key have no order but that in which they ran.
        ran.sort_by(|a, b| a.index.cmp(&b.index).then(a.start.cmp(&b.start)));
        let first = &workers[0][number];
        if first.in_order && spec.order == Order::Ordered && first.sums.3 != product(&ran) {
            return Err(complain("the product is not that of the iterations in their order".into()));
        }
        if !unordered_before {
            replay(case, spec, &ran, &mut serial);
            if serial != memory {
                return Err(complain("the serial program leaves something else".into()));
            }
        }
    }
    Ok(())
}

fn replay(case: &Case, spec: &LoopSpec, ran: &[Ran], memory: &mut Memory) -> u64 {
    ran.iter().fold(0, |sum: u64, ran| sum.wrapping_add(step(case, spec, &ran.index, ran.id, memory)))
}

fn once_each(case: &Case, ran: &[Ran]) -> Result<(), String> {
    let expected = case.space.iterations();
    let mut found: Vec<(Vec<i64>, u64)> = ran.iter().map(|ran| (ran.index.clone(), ran.id)).collect();
    found.sort();
    if let Some(twice) = found.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("iteration {:?} ran twice", twice[0]));
    }
    if let Some(lost) = expected.iter().find(|iteration| found.binary_search(iteration).is_err()) {
        return Err(format!("iteration {lost:?} did not run"));
    }
    if found.len() != expected.len() {
        return Err(format!("{} iterations ran of {}", found.len(), expected.len()));
    }
    Ok(())
}

/// The accesses to an element so far, in the order of the starts.
#[derive(Default)]
struct Seen<'a> {
    last_write: Option<&'a Ran>,
    last_read: Option<&'a Ran>,
    highest_write: Option<&'a Ran>,
    highest_read: Option<&'a Ran>,
}

/// Compares each iteration with those that touched its elements before, element by element.
fn alone(case: &Case, spec: &LoopSpec, ran: &[Ran]) -> Result<(), String> {
    let mut elements: BTreeMap<(usize, usize), Seen<'_>> = BTreeMap::new();
    for this in ran {
        for (element, written) in touched(case, spec, &this.index, this.id) {
            let seen = elements.entry(element).or_default();
            let reads = if written { [seen.last_read, seen.highest_read] } else { [None; 2] };
            for before in [seen.last_write, reads[0]].into_iter().flatten() {
                if before.end > this.start {
                    return Err(format!("{before:?} and {this:?} overlap, and both touch {element:?}"));
                }
            }
            for before in [seen.highest_write, reads[1]].into_iter().flatten() {
                if spec.order == Order::Ordered && before.index > this.index {
                    return Err(format!("{before:?} ran before {this:?}, and both touch {element:?}"));
                }
            }
            let later = |old: Option<&Ran>| old.is_none_or(|old| old.end < this.end);
            let higher = |old: Option<&Ran>| old.is_none_or(|old| old.index < this.index);
            let (last, highest) = match written {
                true => (&mut seen.last_write, &mut seen.highest_write),
                false => (&mut seen.last_read, &mut seen.highest_read),
            };
            if later(*last) {
                *last = Some(this);
            }
            if higher(*highest) {
                *highest = Some(this);
            }
        }
    }
    Ok(())
}
