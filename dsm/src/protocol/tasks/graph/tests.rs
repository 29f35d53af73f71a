//! Graphs of random tasks against a search of all orders in which they may run.
use super::*;
use proptest::prelude::*;

fn line(elements: std::ops::Range<usize>) -> Region {
    Region::of([elements])
}

fn task(elements: std::ops::Range<usize>, writes: bool, after: Vec<(Rank, usize)>) -> Task {
    let region = vec![line(elements)];
    let (reads, writes) = if writes { (vec![], region) } else { (region, vec![]) };
    Task { accesses: vec![Access { array: 0, reads, writes }], after }
}

fn folded(task: &Task) -> Task {
    let mut task = task.clone();
    task.accesses.iter_mut().for_each(Access::fold);
    task
}

/// Whether two conflicting tasks could be under way at once: all states that workers can be in are gone through.
fn can_race(tasks: &[Vec<Task>]) -> Option<bool> {
    let mut seen = std::collections::HashSet::new();
    let mut open = vec![vec![0usize; tasks.len()]];
    let mut ended = false;
    let mut raced = false;
    while let Some(done) = open.pop() {
        if !seen.insert(done.clone()) {
            continue;
        }
        let ready = |worker: usize| {
            let task = tasks[worker].get(done[worker])?;
            task.after.iter().all(|(rank, count)| done[*rank as usize] >= *count).then_some(task)
        };
        let under_way: Vec<(usize, &Task)> =
            (0..tasks.len()).filter_map(|worker| Some((worker, ready(worker)?))).collect();
        for (at, (_, a)) in under_way.iter().enumerate() {
            raced |= under_way[at + 1..].iter().any(|(_, b)| race(&folded(a), &folded(b)).is_some());
        }
        ended |= done.iter().zip(tasks).all(|(done, tasks)| *done == tasks.len());
        for (worker, _) in under_way {
            let mut next = done.clone();
            next[worker] += 1;
            open.push(next);
        }
    }
    ended.then_some(raced)
}

fn random_tasks() -> impl Strategy<Value = Vec<Vec<Task>>> {
    let one = (0usize..6, 1usize..3, any::<bool>(), prop::collection::vec((0u32..3, 0usize..4), 0..3))
        .prop_map(|(start, len, writes, after)| task(start..start + len, writes, after));
    prop::collection::vec(prop::collection::vec(one, 0..4), 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_graph_is_made_where_no_order_has_a_race(tasks in random_tasks()) {
        let made = TaskGraph::new(vec![vec![8]], tasks.clone());
        match (can_race(&tasks), made) {
            (None, Err(TaskError::Endless { .. })) => {}
            (Some(true), Err(TaskError::Race { tasks: [a, b], array: 0 })) => {
                let of = |(rank, number): (Rank, usize)| &tasks[rank as usize][number];
                prop_assert!(race(&folded(of(a)), &folded(of(b))).is_some());
            }
            (Some(false), Ok(_)) => {}
            (expected, made) => prop_assert!(false, "{expected:?}, {made:?}"),
        }
    }
}

/// A box of a 40 x 40 array, thin, wide or with strides.
fn region() -> impl Strategy<Value = Region> {
    let span = || (0usize..30, 1usize..6, prop::bool::weighted(0.1), 1usize..4);
    (span(), span()).prop_map(|sides| {
        let of = |(start, len, is_wide, step): (usize, usize, bool, usize)| match is_wide {
            true => Span { start: 0, end: 40, step },
            false => Span { start, end: start + len, step },
        };
        Region { spans: vec![of(sides.0), of(sides.1)] }
    })
}

proptest! {
    #[test]
    fn whatever_may_race_is_near(
        boxes in prop::collection::vec((0usize..2, prop::collection::vec(region(), 1..3), any::<bool>()), 1..60),
        one in (0usize..2, region(), any::<bool>()),
        from in 0usize..20,
    ) {
        let task = |array, regions: Vec<Region>, writes| {
            let (reads, writes) = if writes { (vec![], regions) } else { (regions, vec![]) };
            folded(&Task { accesses: vec![Access { array, reads, writes }], after: vec![] })
        };
        let tasks: Vec<Task> =
            boxes.into_iter().map(|(array, regions, writes)| task(array, regions, writes)).collect();
        let one = vec![task(one.0, vec![one.1], one.2)];
        let among = from.min(tasks.len())..tasks.len();
        let blocks = Blocks::of(&[vec![40, 40], vec![40, 40]], &[one.clone(), tasks.clone()]);
        let mut found = vec![7];
        Near::of(&blocks, &tasks).find(&one[0], among.clone(), &mut found);
        prop_assert!(found.is_sorted() && found.iter().all(|number| among.contains(&(*number as usize))));
        for number in among.filter(|number| race(&one[0], &tasks[*number]).is_some()) {
            prop_assert!(found.contains(&(number as u32)), "{number} is not in {found:?}");
        }
    }
}

#[test]
fn accesses_that_are_none_are_refused() {
    let refused = |access: Access| {
        let task = Task { accesses: vec![access.clone(), access], after: vec![] };
        TaskGraph::new(vec![vec![8]], vec![vec![task]]).unwrap_err()
    };
    let expected = TaskError::Access { task: (0, 0), array: 0 };
    // Twice the same array.
    assert_eq!(refused(Access { array: 0, reads: vec![], writes: vec![] }), expected);
    let alone = |regions: Vec<Region>| {
        let access = Access { array: 0, reads: regions, writes: vec![] };
        TaskGraph::new(vec![vec![8]], vec![vec![Task { accesses: vec![access], after: vec![] }]])
    };
    assert_eq!(alone(vec![line(0..9)]).unwrap_err(), expected);
    assert_eq!(alone(vec![Region::of([0..2, 0..2])]).unwrap_err(), expected);
    assert_eq!(
        alone(vec![Region { spans: vec![Span { start: 0, end: 2, step: 0 }] }]).unwrap_err(),
        expected
    );
    assert!(alone(vec![line(0..8)]).is_ok());
}

#[test]
fn what_waits_for_a_worker_that_is_not_there_is_refused() {
    let made = TaskGraph::new(vec![vec![8]], vec![vec![task(0..1, true, vec![(7, 1)])]]);
    assert_eq!(made.unwrap_err(), TaskError::Endless { task: (0, 0) });
}

#[test]
fn errors_say_what_to_do() {
    let (task, array) = ((1, 2), 0);
    for (error, advice) in [
        (TaskError::Race { tasks: [task, (0, 1)], array }, "put one after the other"),
        (TaskError::Endless { task }, "name tasks that there are"),
        (TaskError::TooMany { rank: 1, tasks: 1 << 24 }, "make them larger"),
        (TaskError::Access { task, array }, "names an array of the graph once"),
    ] {
        assert!(error.to_string().contains(advice), "{error}");
    }
}
