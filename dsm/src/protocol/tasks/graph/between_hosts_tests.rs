//! Random graphs over several hosts: whatever comes late, a task finds its elements as those before it left them.
use super::between_hosts::{count_runs, for_each_run};
use super::*;
use crate::protocol::tasks::crossing::{Piece, Places};
use proptest::prelude::*;
use std::collections::VecDeque;

const SHAPE: [usize; 2] = [6, 5];
const LEN: usize = SHAPE[0] * SHAPE[1];
const HOSTS: usize = 3;
/// So many that two of a host may need what a third wrote, of whom one of them knows by way of a fourth.
const WORKERS: usize = 4;
const NOTHING: u64 = u64::MAX;

fn region() -> impl Strategy<Value = Region> {
    let span = |extent: usize| {
        (0..extent, 1..extent, 1usize..4, prop::bool::weighted(0.3)).prop_map(
            move |(start, len, step, is_whole)| match is_whole {
                true => Span::of(0..extent),
                false => Span { start, end: (start + len).min(extent), step },
            },
        )
    };
    (span(SHAPE[0]), span(SHAPE[1])).prop_map(|(rows, columns)| Region { spans: vec![rows, columns] })
}

fn elements(regions: &[Region]) -> Vec<usize> {
    let mut all = Vec::new();
    for region in regions {
        for_each_run(region, &SHAPE, |first, count| all.extend(first as usize..(first + count) as usize));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Tasks in an order in which they may run: whose each is, and its number there.
type Order = Vec<(usize, usize)>;

/// Tasks of some workers, each of which waits for those before it with which it conflicts; but not for what follows from its other
/// waits.
fn graphs() -> impl Strategy<Value = (Vec<Vec<Task>>, Order)> {
    let one = (0..WORKERS, prop::collection::vec(region(), 0..3), prop::collection::vec(region(), 0..2));
    prop::collection::vec(one, 1..16).prop_map(|all| {
        let (mut tasks, mut order): (Vec<Vec<Task>>, Order) = (vec![Vec::new(); WORKERS], Vec::new());
        let mut clocks: Vec<Vec<[usize; WORKERS]>> = vec![Vec::new(); WORKERS];
        for (worker, reads, writes) in all {
            let made = folded(&Task { accesses: vec![Access { array: 0, reads, writes }], after: vec![] });
            let mut after = [0; WORKERS];
            for (other, number) in &order {
                if *other != worker && race(&made, &folded(&tasks[*other][*number])).is_some() {
                    after[*other] = after[*other].max(number + 1);
                }
            }
            let known = |rank: usize, count: usize, of: &[[usize; WORKERS]]| {
                of.iter().any(|clock| clock[rank] >= count)
            };
            let mut own = clocks[worker].last().copied().unwrap_or_default();
            own[worker] = tasks[worker].len();
            let waits: Vec<(usize, usize)> =
                (0..WORKERS).map(|rank| (rank, after[rank])).filter(|(_, count)| *count > 0).collect();
            let clock_of = |(rank, count): (usize, usize)| {
                let mut clock = clocks[rank][count - 1];
                clock[rank] = clock[rank].max(count);
                clock
            };
            let kept: Vec<(usize, usize)> = waits
                .iter()
                .filter(|(rank, count)| {
                    let others = waits.iter().filter(|other| other.0 != *rank).map(|other| clock_of(*other));
                    let mut others: Vec<_> = others.collect();
                    others.push(own);
                    !known(*rank, *count, &others)
                })
                .copied()
                .collect();
            // Two may each follow from the other's; then both stay.
            let kept = if kept.is_empty() { waits.clone() } else { kept };
            let mut clock = own;
            for wait in &waits {
                let theirs = clock_of(*wait);
                (0..WORKERS).for_each(|rank| clock[rank] = clock[rank].max(theirs[rank]));
            }
            clocks[worker].push(clock);
            order.push((worker, tasks[worker].len()));
            let after = kept.into_iter().map(|(rank, count)| (rank as Rank, count)).collect();
            tasks[worker].push(Task { after, ..made });
        }
        (tasks, order)
    })
}

fn folded(task: &Task) -> Task {
    let mut task = task.clone();
    task.accesses.iter_mut().for_each(Access::fold);
    task
}

fn touched(task: &Task) -> (Vec<usize>, Vec<usize>) {
    (elements(&task.accesses[0].reads), elements(&task.accesses[0].writes))
}

/// By worker and task: what each element is before it; and in the end. A task leaves a number of its own.
fn serial(graph: &TaskGraph, order: &Order) -> (Vec<Vec<Vec<u64>>>, Vec<u64>) {
    let (mut now, mut before) = (vec![0; LEN], vec![Vec::new(); WORKERS]);
    for (worker, number) in order {
        before[*worker].push(now.clone());
        for at in touched(&graph.tasks[*worker][*number]).1 {
            now[at] = (worker * 100 + number + 1) as u64;
        }
    }
    (before, now)
}

fn check(graph: &TaskGraph, order: &Order, places: &Places, choices: &[u8]) -> Result<(), TestCaseError> {
    let crossing = graph.crossing_of(places).unwrap();
    let (before, last) = serial(graph, order);
    let fresh = |host| vec![if places.homes[0] == host { 0u64 } else { NOTHING }; LEN];
    let mut copies: Vec<Vec<u64>> = (0..HOSTS).map(fresh).collect();
    let values = |copy: &Vec<u64>, pieces: Vec<Piece>| {
        let each = pieces.into_iter().flat_map(|piece| piece.first..piece.first + piece.count);
        each.map(|at| (at as usize, copy[at as usize])).collect::<Vec<_>>()
    };
    let mut streams = vec![vec![VecDeque::new(); HOSTS]; WORKERS];
    let mut known = vec![vec![None; WORKERS]; HOSTS];
    let mut unsaid = vec![vec![Vec::new(); HOSTS]; WORKERS];
    for worker in 0..WORKERS {
        let here = places.host_of[worker];
        known[here][worker] = Some(0);
        for host in (0..HOSTS).filter(|host| *host != here) {
            let initial = crossing.route(worker as Rank, host).initial.clone();
            streams[worker][host].push_back((values(&copies[here], initial), 0));
        }
    }
    let (mut done, mut choices) = ([0usize; WORKERS], choices.iter().cycle());
    loop {
        let is_ready = |worker: &usize| {
            let known = &known[places.host_of[*worker]];
            let Some(task) = graph.tasks[*worker].get(done[*worker]) else { return false };
            let after = task.after.iter().map(|(rank, count)| (*rank, *count as u64));
            known.iter().all(Option::is_some)
                && after
                    .chain(crossing.needs(*worker as Rank, done[*worker]))
                    .all(|(rank, count)| known[rank as usize] >= Some(count))
        };
        let ready: Vec<_> = (0..WORKERS).filter(is_ready).map(|worker| (worker, None)).collect();
        let ways = (0..WORKERS).flat_map(|worker| (0..HOSTS).map(move |host| (worker, Some(host))));
        let came = ways.filter(|(worker, host)| !streams[*worker][host.unwrap()].is_empty());
        let all: Vec<_> = ready.into_iter().chain(came).collect();
        if all.is_empty() {
            break;
        }
        match all[usize::from(*choices.next().unwrap()) % all.len()] {
            (worker, None) => {
                let (number, here) = (done[worker], places.host_of[worker]);
                let (reads, writes) = touched(&graph.tasks[worker][number]);
                for at in reads {
                    prop_assert_eq!(
                        copies[here][at],
                        before[worker][number][at],
                        "{} {} {}",
                        worker,
                        number,
                        at
                    );
                }
                writes.into_iter().for_each(|at| copies[here][at] = (worker * 100 + number + 1) as u64);
                done[worker] += 1;
                known[here][worker] = Some(done[worker] as u64);
                for host in (0..HOSTS).filter(|host| *host != here) {
                    let route = crossing.route(worker as Rank, host);
                    unsaid[worker][host].extend(values(&copies[here], route.after(number, true).collect()));
                    if route.tells(number) || done[worker] == graph.tasks[worker].len() {
                        let said = std::mem::take(&mut unsaid[worker][host]);
                        streams[worker][host].push_back((said, done[worker] as u64));
                    }
                }
            }
            (worker, Some(host)) => {
                let (values, count) = streams[worker][host].pop_front().unwrap();
                for (at, value) in values {
                    prop_assert_ne!(value, NOTHING);
                    copies[host][at] = value;
                }
                known[host][worker] = Some(count);
            }
        }
    }
    let all: Vec<usize> = graph.tasks.iter().map(Vec::len).collect();
    prop_assert_eq!(&done[..], &all[..], "nobody is ready");
    for worker in 0..WORKERS {
        let home = crossing.route(worker as Rank, places.homes[0]).home.clone();
        for (at, value) in values(&copies[places.host_of[worker]], home) {
            copies[places.homes[0]][at] = value;
        }
    }
    prop_assert_eq!(&copies[places.homes[0]], &last);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn whatever_comes_late_a_task_finds_its_elements(
        (tasks, order) in graphs(),
        host_of in prop::collection::vec(0usize..HOSTS, WORKERS),
        home in 0..WORKERS,
        choices in prop::collection::vec(any::<u8>(), 96),
    ) {
        let graph = TaskGraph::new(vec![SHAPE.to_vec()], tasks).unwrap();
        let homes = vec![host_of[home]];
        check(&graph, &order, &Places { hosts: HOSTS, host_of, homes }, &choices)?;
    }

    #[test]
    fn the_runs_of_a_region_are_its_elements(region in region()) {
        let inside = |at: &usize| {
            region.spans[0].contains(at / SHAPE[1]) && region.spans[1].contains(at % SHAPE[1])
        };
        prop_assert_eq!(elements(std::slice::from_ref(&region)), (0..LEN).filter(inside).collect::<Vec<_>>());
        let mut runs = 0;
        for_each_run(&region, &SHAPE, |_, _| runs += 1);
        prop_assert_eq!(count_runs(&region, &SHAPE), runs);
    }
}

/// Worker 0 writes elements that 2 and 3, of another host, read: one waits for it, the other for 1, which waits for it. What has come from 1
/// says nothing of what has come from 0.
#[test]
fn who_reads_what_another_of_its_host_reads_too_waits_for_the_writer() {
    let task = |is_written: bool, after: Vec<(Rank, usize)>| {
        let region = vec![Region { spans: vec![Span::of(0..8)] }];
        let (reads, writes) = if is_written { (vec![], region) } else { (region, vec![]) };
        Task { accesses: vec![Access { array: 0, reads, writes }], after }
    };
    let waits = Task { accesses: vec![], after: vec![(0, 1)] };
    let tasks = vec![
        vec![task(true, vec![])],
        vec![waits],
        vec![task(false, vec![(0, 1)])],
        vec![task(false, vec![(1, 1)])],
    ];
    let graph = TaskGraph::new(vec![vec![8]], tasks).unwrap();
    let crossing =
        graph.crossing_of(&Places { hosts: 2, host_of: vec![0, 0, 1, 1], homes: vec![0] }).unwrap();
    assert_eq!(crossing.needs(3, 0).collect::<Vec<_>>(), [(0, 1)]);
    assert!(crossing.route(0, 1).tells(0) && crossing.route(1, 1).tells(0));
}

#[test]
fn an_array_without_dimensions_is_one_element() {
    let task = Task {
        accesses: vec![Access { array: 0, reads: vec![], writes: vec![Region { spans: vec![] }] }],
        after: vec![],
    };
    let graph = TaskGraph::new(vec![vec![]], vec![vec![], vec![task]]).unwrap();
    let crossing = graph.crossing_of(&Places { hosts: 2, host_of: vec![0, 1], homes: vec![0] }).unwrap();
    assert_eq!(crossing.route(1, 0).home, [Piece { array: 0, first: 0, count: 1 }]);
}

#[test]
fn what_lies_in_too_many_places_is_refused() {
    let region = |len: usize| Region { spans: vec![Span { start: 0, end: len, step: 2 }] };
    let graph = |len: usize| {
        let access = Access { array: 0, reads: vec![], writes: vec![region(len)] };
        TaskGraph::new(vec![vec![len]], vec![vec![Task { accesses: vec![access], after: vec![] }]]).unwrap()
    };
    let places = |hosts| Places { hosts, host_of: vec![0], homes: vec![0] };
    assert!(graph(1 << 10).crossing_of(&places(2)).is_ok());
    // Before there is a list of them.
    let error = graph((1 << 32) - 1).crossing_of(&places(2)).unwrap_err().to_string();
    assert!(error.contains("too many places"), "{error}");
    let error = graph(1 << 34).crossing_of(&places(2)).unwrap_err().to_string();
    assert!(error.contains("2^32 elements"), "{error}");
    let error = graph(1 << 10).crossing_of(&places(65)).unwrap_err().to_string();
    assert!(error.contains("64 hosts"), "{error}");
}
