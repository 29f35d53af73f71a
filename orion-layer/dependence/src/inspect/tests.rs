//! Batches against brute force.
use super::*;
use crate::loop_nest::Order;
use crate::mutant::{Mutant, with};
use proptest::prelude::*;

const ROWS: [usize; 2] = [7, 5];

/// Iterations that touch up to three rows each.
fn any_touched() -> impl Strategy<Value = Touched> {
    let key = (0..12usize, prop::bool::weighted(0.7));
    prop::collection::vec(prop::collection::vec(key, 0..4), 1..60).prop_map(|all| touched(&ROWS, &all))
}

fn touched(rows: &[usize], all: &[Vec<(usize, bool)>]) -> Touched {
    let mut touched = Touched::new(rows).unwrap();
    for keys in all {
        keys.iter().for_each(|(number, writes)| touched.note(Key::new(*number, *writes)));
        touched.end_iteration().unwrap();
    }
    touched
}

/// Two rows, one of each array, as in matrix factorization.
fn pairs(count: usize, rows: [usize; 2]) -> Touched {
    let mut state = 1u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let all: Vec<_> =
        (0..count).map(|_| vec![(next(rows[0]), true), (rows[0] + next(rows[1]), true)]).collect();
    touched(&rows, &all)
}

fn conflict(touched: &Touched, a: u32, b: u32) -> bool {
    let (a, b) = (touched.of(a as usize), touched.of(b as usize));
    a.iter().any(|a| b.iter().any(|b| a.number() == b.number() && (a.writes() || b.writes())))
}

/// Whether batches do what they promise: by looking at all pairs of iterations.
fn is_right(touched: &Touched, batches: &Batches, order: Order) -> bool {
    let mut at: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); touched.len()];
    for batch in 0..batches.len() {
        for group in batches.groups_of(batch) {
            for (place, iteration) in batches.of_group(group).iter().enumerate() {
                at[*iteration as usize].push((batch, group, place));
            }
        }
    }
    let pair = |a: usize, b: usize| {
        let ((batch, group, place), (other_batch, other, other_place)) = (at[a][0], at[b][0]);
        if !conflict(touched, a as u32, b as u32) {
            return true;
        }
        let apart = batch != other_batch || group == other;
        apart && (order == Order::Unordered || (batch, place) < (other_batch, other_place))
    };
    at.iter().all(|places| places.len() == 1) && (0..touched.len()).all(|b| (0..b).all(|a| pair(a, b)))
}

/// Runs the loop: each iteration mixes the rows that it reads and writes that to those that it writes.
fn run(touched: &Touched, iterations: impl IntoIterator<Item = u32>) -> Vec<u64> {
    let mut rows = vec![1u64; touched.rows()];
    for iteration in iterations {
        let keys = touched.of(iteration as usize);
        let mixed = keys.iter().fold(u64::from(iteration) + 17, |mixed, key| {
            (mixed ^ rows[key.number()]).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
        });
        keys.iter().filter(|key| key.writes()).for_each(|key| rows[key.number()] = mixed);
    }
    rows
}

/// The iterations as `workers` run them: in each batch, the last worker first.
fn dealt(touched: &Touched, batches: &Batches, workers: usize) -> Vec<u32> {
    let dealt = deal(touched, batches, workers);
    let mut list = Vec::new();
    for batch in 0..batches.len() {
        (0..workers).rev().for_each(|worker| dealt.list(batches, (batch, worker), &mut list));
    }
    list
}

proptest! {
    #[test]
    fn components_and_levels_keep_the_order(touched in any_touched(), size in 1..70usize, workers in 1..5usize) {
        let serial = run(&touched, 0..touched.len() as u32);
        for batches in [components(&touched, size), levels(&touched, usize::MAX).unwrap()] {
            prop_assert!(is_right(&touched, &batches, Order::Ordered));
            prop_assert_eq!(verify(&touched, &batches, Order::Ordered), Ok(()));
            prop_assert_eq!(&run(&touched, dealt(&touched, &batches, workers)), &serial);
        }
    }

    #[test]
    fn blocks_never_conflict_within_a_batch(touched in any_touched(), parts in 1..6usize, workers in 1..5usize) {
        for cut in [Cut::Ranges, Cut::Spread] {
            let batches = blocks(&touched, parts, cut).unwrap();
            prop_assert!(is_right(&touched, &batches, Order::Unordered));
            prop_assert_eq!(verify(&touched, &batches, Order::Unordered), Ok(()));
            let of = batches.blocks.as_ref().unwrap();
            for group in 0..batches.group_count() {
                let own = batches.of_group(group);
                let weight: u64 = own.iter().map(|at| u64::from(touched.weight(*at as usize))).sum();
                prop_assert_eq!(of.weights[group], weight);
                let is_own = |row| of.of_group[group].iter().any(|block| of.rows[*block as usize].contains(&row));
                for row in own.iter().flat_map(|at| touched.of(*at as usize)).map(|key| key.number() as u32) {
                    prop_assert!(is_own(row) != of.read.contains(&row));
                }
            }
            let uses = |row: usize| touched.keys().iter().filter(move |key| key.number() == row);
            let counts: Vec<_> = (0..touched.rows()).map(|row| uses(row).count() as u32).collect();
            let is_read = |row: &usize| counts[*row] > 0 && !uses(*row).any(|key| key.writes());
            let read: Vec<_> = (0..touched.rows()).filter(is_read).map(|row| row as u32).collect();
            prop_assert_eq!((&of.read, &of.uses), (&read, &counts));
            // Whoever runs which group, the order of all that conflicts is the same.
            let (one, many) = (dealt(&touched, &batches, 1), dealt(&touched, &batches, workers));
            prop_assert_eq!(run(&touched, one), run(&touched, many));
        }
    }

    #[test]
    fn what_is_wrong_is_refused(touched in any_touched(), size in 2..70usize, swaps in 1..4usize, seed in any::<u32>()) {
        let mut batches = components(&touched, size);
        let count = batches.iterations.len();
        for swap in 0..swaps {
            let at = |salt: u32| (seed.wrapping_mul(salt).wrapping_add(swap as u32) % count as u32) as usize;
            batches.iterations.swap(at(2_654_435_761), at(40_503));
        }
        for order in [Order::Ordered, Order::Unordered] {
            prop_assert_eq!(verify(&touched, &batches, order).is_ok(), is_right(&touched, &batches, order));
        }
    }
}

#[test]
fn a_conflict_that_is_dropped_is_noticed() {
    let touched = pairs(400, [40, 30]);
    let broken = with(Some(Mutant::EdgeDropped), || components(&touched, 100));
    assert!(matches!(verify(&touched, &broken, Order::Ordered), Err(Broken::Conflict { .. })));
    assert_eq!(verify(&touched, &components(&touched, 100), Order::Ordered), Ok(()));
}

#[test]
fn every_iteration_is_there_once() {
    let touched = pairs(20, [9, 9]);
    let whole = components(&touched, 20);
    let mut twice = whole.clone();
    twice.iterations[3] = twice.iterations[4];
    let lost = twice.iterations[4] as usize;
    assert_eq!(verify(&touched, &twice, Order::Unordered), Err(Broken::NotOnce(lost)));
    let mut fewer = whole;
    fewer.iterations.pop();
    *fewer.groups.last_mut().unwrap() -= 1;
    assert!(matches!(verify(&touched, &fewer, Order::Unordered), Err(Broken::NotOnce(_))));
}

#[test]
fn pairs_of_blocks_take_as_many_batches_as_there_are_blocks() {
    let batches = blocks(&pairs(20_000, [300, 200]), 12, Cut::Ranges).unwrap();
    assert_eq!((batches.len(), batches.group_count()), (12, 144));
    // Two rows of one array: a tournament.
    let all: Vec<_> = (0..1000).map(|at| vec![(at % 50, true), (at * 7 / 3 % 50, true)]).collect();
    let graph = touched(&[50], &all);
    let batches = blocks(&graph, 5, Cut::Spread).unwrap();
    assert!(batches.len() <= 6, "{}", batches.len());
}

const PACE: Pace = Pace { iteration_ns: 50.0, overhead_ns: 5.0, batch_ns: 1500.0 };

#[test]
fn the_largest_component_decides_on_the_batch() {
    // Of the random graph, components are small up to about 45 * 45 / 2 iterations, and then all is one.
    let touched = pairs(400_000, [10_000, 10_000]);
    let found = choose(&touched, Order::Ordered, 2, PACE);
    let Some((Kind::Components(size), batches)) = &found.batches else { panic!("{:?}", found.tried) };
    assert!((1024..16_384).contains(size), "{:?} {:?}", found.tried, found.growth);
    assert!(batches.len() > 20);
    assert!(found.growth.windows(2).all(|two| two[0].batch < two[1].batch));
    assert!(found.growth.last().unwrap().largest > 0.9);
}

#[test]
fn a_chain_stays_serial() {
    let all: Vec<_> = (0..5000).map(|at| vec![(at, false), (at + 1, true)]).collect();
    let touched = touched(&[5001], &all);
    let found = choose(&touched, Order::Ordered, 2, PACE);
    assert!(found.batches.is_none(), "{:?}", found.tried);
    assert!(found.growth.iter().all(|one| one.largest > 0.99));
    // In any order, blocks of it run side by side.
    let found = choose(&touched, Order::Unordered, 2, PACE);
    assert!(matches!(found.batches, Some((Kind::Ranges(_), _))), "{:?}", found.tried);
}

#[test]
fn a_graph_of_few_levels_runs_by_levels() {
    // Every iteration reads rows of the level before: one component, and a hundred levels.
    let row = |level: usize, at: usize| level * 200 + at % 200;
    let all: Vec<_> = (0..20_000)
        .map(|at| {
            let (level, at) = (at / 200, at % 200);
            let above = |salt: usize| (row(level, at * salt + level), false);
            vec![(row(level + 1, at), true), above(1), above(38), above(109), above(17)]
        })
        .collect();
    let found = choose(&touched(&[20_200], &all), Order::Ordered, 2, PACE);
    assert!(matches!(found.batches, Some((Kind::Levels, _))), "{:?}", found.tried);
    assert!(found.tried[0].parallelism > 1.9);
}

#[test]
fn one_row_of_one_array_is_dealt_by_weight() {
    let all: Vec<_> = (0..30_000).map(|at| vec![(at % 613 * (at % 3) / 2, true)]).collect();
    for order in [Order::Ordered, Order::Unordered] {
        let found = choose(&touched(&[1000], &all), order, 2, PACE);
        assert!(found.batches.is_some_and(|(_, batches)| batches.len() == 1), "{:?}", found.tried);
    }
}
