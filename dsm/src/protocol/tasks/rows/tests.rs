//! Plans of random rows against what brute force says of who touches what when.
use super::*;
use proptest::prelude::*;

pub(super) const ROWS: usize = 6;
const PASSES: usize = 3;

/// `plan[worker][batch][array]`: what is written and what is read.
pub(super) type Lists = Vec<Vec<Vec<(Vec<u32>, Vec<u32>)>>>;

fn touched(lists: &Lists, arrays: usize) -> Vec<Vec<Touched>> {
    let of = |batches: &Vec<Vec<(Vec<u32>, Vec<u32>)>>, array: usize| Touched {
        writes: batches.iter().map(|batch| &batch[array].0[..]).collect(),
        reads: batches.iter().map(|batch| &batch[array].1[..]).collect(),
    };
    lists.iter().map(|batches| (0..arrays).map(|array| of(batches, array)).collect()).collect()
}

pub(super) fn made(lists: &Lists, arrays: usize, batches: usize) -> Result<RowPlan, RowError> {
    RowPlan::new(vec![ROWS; arrays], batches, touched(lists, arrays))
}

/// Arrays, batches and lists of two to four workers.
pub(super) fn random() -> impl Strategy<Value = (usize, usize, Lists)> {
    (1usize..3, 1usize..5, 2usize..5).prop_flat_map(|(arrays, batches, workers)| {
        let rows = |most| prop::collection::vec(0..ROWS as u32, 0..most);
        let batch = prop::collection::vec((rows(2), rows(3)), arrays);
        let lists = prop::collection::vec(prop::collection::vec(batch, batches), workers);
        (Just(arrays), Just(batches), lists)
    })
}

/// Leaves out what would be a race, in favour of the first worker.
pub(super) fn without_races((arrays, batches, mut lists): (usize, usize, Lists)) -> (usize, usize, Lists) {
    for batch in 0..batches {
        for array in 0..arrays {
            let mut writer = [None; ROWS];
            for (worker, list) in lists.iter_mut().enumerate() {
                list[batch][array].0.retain(|row| *writer[*row as usize].get_or_insert(worker) == worker);
            }
            for (worker, list) in lists.iter_mut().enumerate() {
                list[batch][array].1.retain(|row| writer[*row as usize].is_none_or(|other| other == worker));
            }
        }
    }
    (arrays, batches, lists)
}

/// An array and row that both touch, each in its batch, and one writes.
fn conflict(lists: &Lists, a: (usize, usize), b: (usize, usize)) -> Option<(usize, u32)> {
    let (a, b) = (&lists[a.0][a.1], &lists[b.0][b.1]);
    a.iter().zip(b).enumerate().find_map(|(array, ((writes, reads), (others_writes, others_reads)))| {
        let conflict = |row: &&u32| others_writes.contains(row) || others_reads.contains(row);
        let row =
            writes.iter().find(conflict).or_else(|| reads.iter().find(|row| others_writes.contains(row)));
        row.map(|row| (array, *row))
    })
}

/// By worker and batch: the batches of others that are to be done before, through all passes.
type Before = Vec<Vec<Vec<(Rank, u64)>>>;

fn waits_of(plan: &RowPlan) -> Before {
    let of = |worker: usize| {
        (0..PASSES * plan.batches())
            .map(|at| plan.waits(worker as Rank, at / plan.batches(), at % plan.batches()).collect())
            .collect()
    };
    (0..plan.workers()).map(of).collect()
}

/// Two batches of different workers that touch a common row, one writing it, the first of which need not be done when the second
/// begins.
fn unordered(lists: &Lists, batches: usize, before: &Before) -> Option<[(usize, usize); 2]> {
    let workers = lists.len();
    let all = PASSES * batches;
    // How many batches of each worker are done when one begins.
    let mut clocks = vec![vec![vec![0u64; workers]; all]; workers];
    for at in 0..all {
        for worker in 0..workers {
            let mut clock = if at > 0 { clocks[worker][at - 1].clone() } else { vec![0; workers] };
            clock[worker] = at as u64;
            for &(other, count) in &before[worker][at] {
                assert!(0 < count && count <= at as u64, "batches wait for earlier ones alone");
                let theirs = &clocks[other as usize][count as usize - 1];
                clock.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
                clock[other as usize] = clock[other as usize].max(count);
            }
            clocks[worker][at] = clock;
        }
    }
    let is_late = |&((a, first), (b, second)): &((usize, usize), (usize, usize))| {
        let meet = conflict(lists, (a, first % batches), (b, second % batches)).is_some();
        a != b && meet && clocks[b][second][a] <= first as u64
    };
    let each = |from: usize| (0..workers).flat_map(move |w| (from..all).map(move |at| (w, at)));
    let pairs = each(0).flat_map(|one| each(one.1 + 1).map(move |other| (one, other)));
    pairs.into_iter().find(is_late).map(|(one, other)| [one, other])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_plan_is_made_where_no_batch_has_a_race((arrays, batches, lists) in random()) {
        let raced = (0..batches).any(|batch| {
            (0..lists.len()).any(|a| (0..a).any(|b| conflict(&lists, (a, batch), (b, batch)).is_some()))
        });
        match made(&lists, arrays, batches) {
            Ok(_) => prop_assert!(!raced),
            Err(RowError::Race { array, row, batch, workers: [a, b], both_write }) => {
                let row = row as u32;
                let of = |worker: Rank| &lists[worker as usize][batch][array];
                prop_assert!(a != b && of(a).0.contains(&row));
                let others = if both_write { &of(b).0 } else { &of(b).1 };
                prop_assert!(others.contains(&row));
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn who_touches_a_row_waits_for_those_before_and_nobody_else(
        (arrays, batches, lists) in random().prop_map(without_races)
    ) {
        let plan = made(&lists, arrays, batches).unwrap();
        let before = waits_of(&plan);
        prop_assert_eq!(unordered(&lists, batches, &before), None);
        for (worker, of_worker) in before.iter().enumerate() {
            for (at, waits) in of_worker.iter().enumerate() {
                for &(other, count) in waits {
                    let last = (other as usize, (count as usize - 1) % batches);
                    prop_assert!(conflict(&lists, (worker, at % batches), last).is_some());
                }
            }
        }
    }
}

/// Rows 0 and 1 of three workers: written, read by the others, written again by another; and the next pass.
#[test]
fn mutant_a_wait_that_is_dropped() {
    let (none, row): (Vec<u32>, _) = (vec![], |row: u32| vec![row]);
    let list = |batches: [(&Vec<u32>, Vec<u32>); 3]| {
        batches.into_iter().map(|(writes, reads)| vec![(writes.clone(), reads)]).collect::<Vec<_>>()
    };
    let (zero, one) = (row(0), row(1));
    let lists = vec![
        list([(&zero, vec![]), (&none, vec![]), (&one, vec![])]),
        list([(&none, vec![1]), (&none, vec![0]), (&none, vec![0])]),
        list([(&none, vec![1]), (&none, vec![0]), (&none, vec![])]),
    ];
    let before = waits_of(&made(&lists, 1, 3).unwrap());
    assert_eq!(unordered(&lists, 3, &before), None);
    let mut dropped = 0;
    for (worker, of_worker) in before.iter().enumerate() {
        for (at, waits) in of_worker.iter().enumerate() {
            for number in 0..waits.len() {
                let mut fewer = before.clone();
                fewer[worker][at].remove(number);
                let found = unordered(&lists, 3, &fewer);
                assert!(found.is_some_and(|[_, (late, _)]| late == worker), "{worker} {at} {found:?}");
                dropped += 1;
            }
        }
    }
    assert!(dropped >= 12, "{dropped}");
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let list = |starts: &[usize], rows: &[u32]| RowList::new(starts.to_vec(), rows.to_vec());
    let refused = |writes: RowList| {
        let reads = RowList::default();
        RowPlan::new(vec![4], 2, vec![vec![Touched::default()], vec![Touched { writes, reads }]]).unwrap_err()
    };
    let unfit = RowError::List { array: 0, worker: 1, is_written: true, batches: 2 };
    for starts in [&[0, 1][..], &[0, 1, 3], &[1, 1, 2], &[0, 3, 2], &[0, 1, 1, 2], &[]] {
        assert_eq!(refused(list(starts, &[0, 1])), unfit, "{starts:?}");
    }
    assert_eq!(
        refused(list(&[0, 2, 4], &[0, 1, 3, 4])),
        RowError::NoRow { array: 0, row: 4, rows: 4, batch: 1, worker: 1 }
    );
    assert_eq!(
        RowPlan::new(vec![4], 2, vec![vec![]]).unwrap_err(),
        RowError::Arrays { worker: 0, lists: 0, arrays: 1 }
    );
    assert_eq!(RowPlan::new(vec![4], 1 << 24, vec![]).unwrap_err(), RowError::TooMany);
    assert_eq!(RowPlan::check_size(&[4, 1 << 32], 1, 1).unwrap_err(), RowError::TooMany);
    // Nobody has the memory for thousands of arrays of 2^32 rows.
    let rows = u32::MAX as usize;
    let error = RowPlan::new(vec![rows; 1 << 12], 1, vec![vec![Touched::default(); 1 << 12]; 2]).unwrap_err();
    assert!(matches!(error, RowError::NoMemory { .. }), "{error}");
}

#[test]
fn different_plans_have_different_digests() {
    let of = |writes: &[&[u32]], reads: &[&[u32]]| {
        let touched = Touched { writes: writes.iter().collect(), reads: reads.iter().collect() };
        RowPlan::new(vec![8], 2, vec![vec![touched]]).unwrap().digest()
    };
    let all = [
        of(&[&[1, 2, 3], &[]], &[&[], &[]]),
        of(&[&[1, 2], &[3]], &[&[], &[]]),
        of(&[&[2, 1, 3], &[]], &[&[], &[]]),
        of(&[&[], &[]], &[&[1, 2, 3], &[]]),
        of(&[&[1, 2], &[]], &[&[3], &[]]),
        of(&[&[1, 2, 4], &[]], &[&[], &[]]),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at}");
    }
    assert_eq!(all[0], of(&[&[1, 2, 3], &[]], &[&[], &[]]));
}
