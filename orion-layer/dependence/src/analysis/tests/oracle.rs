//! The analysis against enumeration: every pair of iterations of random small nests.
use std::collections::BTreeSet;

use super::random::{Random, random_nest};
use super::*;

/// The cells of an access, first and last index per dimension of the array.
type Cells = Vec<(i64, i64)>;

/// Every two accesses that touch the same element at different iterations, and the distance: source, sink, sink minus
/// source. The source runs first.
pub(super) type Conflicts = BTreeSet<(usize, usize, Vec<i64>)>;

/// Runs through all pairs of iterations. `seed` chooses entries and the values of unknown subscripts.
pub(super) fn conflicts(nest: &LoopNest, seed: u64) -> Conflicts {
    let iterations = iterations(nest, &mut Random(seed));
    let cells: Vec<Vec<Vec<Cells>>> = iterations
        .iter()
        .enumerate()
        .map(|(number, index)| {
            let of = |(k, access): (usize, &Access)| {
                instances(nest, access, index, seed ^ (number as u64) << 32 ^ (k as u64) << 20)
            };
            nest.accesses.iter().enumerate().map(of).collect()
        })
        .collect();
    let mut found = Conflicts::new();
    for (x, earlier) in iterations.iter().enumerate() {
        for (y, later) in iterations.iter().enumerate().skip(x + 1) {
            let distance: Vec<i64> = later.iter().zip(earlier).map(|(b, a)| b - a).collect();
            for (a, source) in nest.accesses.iter().enumerate() {
                for (b, sink) in nest.accesses.iter().enumerate() {
                    let writes = source.mode.writes() || sink.mode.writes();
                    if source.array != sink.array || !writes || !meet(&cells[x][a], &cells[y][b]) {
                        continue;
                    }
                    found.insert((a, b, distance.clone()));
                }
            }
        }
    }
    found
}

/// The indices of all iterations, in lexicographic order; with repetitions where the nest runs over entries.
fn iterations(nest: &LoopNest, random: &mut Random) -> Vec<Vec<i64>> {
    let all = points(&nest.dims);
    match nest.space {
        Space::Dense => all,
        Space::Entries { .. } if all.is_empty() => all,
        Space::Entries { count, .. } => {
            let mut chosen: Vec<Vec<i64>> =
                (0..count).map(|_| all[(random.next() % all.len() as u64) as usize].clone()).collect();
            chosen.sort();
            chosen
        }
    }
}

/// All values of these variables together.
fn points(variables: &[LoopVar]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for variable in variables {
        let (start, end) = variable.bounds.expect("random nests are bounded");
        let longer = |point: Vec<i64>| (start..end).map(move |value| [&point[..], &[value]].concat());
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// The cells of an access in one iteration, over the inner variables that it mentions. A subscript that is unknown has
/// an arbitrary value; one that names nothing makes the instance vanish.
fn instances(nest: &LoopNest, access: &Access, index: &[i64], seed: u64) -> Vec<Cells> {
    let dims = nest.dims.len();
    let mentions = |form: &Affine, k: usize| form.coefficient(dims + k) != 0;
    let named = |k: usize| {
        access.subscripts.iter().any(|subscript| match subscript {
            Subscript::Index(form) => mentions(form, k),
            Subscript::Range(start, end) => mentions(start, k) || mentions(end, k),
            _ => false,
        })
    };
    let inner: Vec<LoopVar> = (0..nest.inner.len())
        .map(|k| if named(k) { nest.inner[k].clone() } else { var("", (0, 1)) })
        .collect();
    let mut random = Random(seed);
    let mut found = Vec::new();
    for inner in points(&inner) {
        let variables = [index, &inner].concat();
        let value = |form: &Affine| form.eval(&variables).expect("small numbers");
        let mut interval = |subscript: &Subscript| match subscript {
            Subscript::Index(form) => (value(form), value(form)),
            Subscript::Range(start, end) => (value(start), value(end) - 1),
            Subscript::Full => (i64::MIN, i64::MAX),
            Subscript::Unknown => {
                let index = random.within(-6, 6);
                (index, index)
            }
        };
        let cells: Cells = access.subscripts.iter().map(&mut interval).collect();
        if cells.iter().all(|(first, last)| first <= last) {
            found.push(cells);
        }
    }
    found
}

/// Whether an instance of one and an instance of the other share a cell.
fn meet(a: &[Cells], b: &[Cells]) -> bool {
    a.iter().any(|x| b.iter().any(|y| x.iter().zip(y).all(|(p, q)| p.0 <= q.1 && q.0 <= p.1)))
}

/// The misses of the analysis: conflicts that no vector covers, or that are not in the set that it calls exact.
pub(super) fn missed(found: &Dependences, conflicts: &Conflicts) -> Vec<String> {
    let mut missed = Vec::new();
    for (a, b, distance) in conflicts {
        let pair = |d: &&super::super::Dependence| (d.source, d.sink) == (*a, *b);
        if !found.list.iter().filter(pair).any(|dependence| dependence.covers(distance)) {
            missed.push(format!("access {a} to access {b} at {distance:?}: no vector"));
        }
        if found.distances(*a, *b).is_some_and(|points| !points.contains(distance)) {
            missed.push(format!("access {a} to access {b} at {distance:?}: not among the distances"));
        }
    }
    missed
}

/// The false claims of the analysis: only for dense nests, where enumeration sees everything.
pub(super) fn invented(nest: &LoopNest, found: &Dependences, conflicts: &Conflicts) -> Vec<String> {
    let mut invented = Vec::new();
    if nest.space != Space::Dense {
        return invented;
    }
    for a in 0..nest.accesses.len() {
        for b in 0..nest.accesses.len() {
            for point in found.distances(a, b).into_iter().flatten() {
                if !conflicts.contains(&(a, b, point.clone())) {
                    invented.push(format!("access {a} to access {b} at {point:?}"));
                }
            }
        }
    }
    let pairs =
        |dependence: &&super::super::Dependence| dependence.exactness != super::super::Exactness::Assumed;
    for dependence in found.list.iter().filter(pairs) {
        let pair = (dependence.source, dependence.sink);
        if !conflicts.iter().any(|(a, b, distance)| pair == (*a, *b) && dependence.covers(distance)) {
            invented.push(format!("access {} to access {}: {dependence}", pair.0, pair.1));
        }
    }
    invented
}

/// How many nests: more in a long run.
fn count() -> u64 {
    if std::env::var_os("HECTARE_LONG").is_some() { 100_000 } else { 2_000 }
}

#[test]
fn every_conflict_of_random_nests_is_found_and_no_other_claimed() {
    let (mut pairs, mut exact, mut total) = (0, 0, 0);
    for seed in 0..count() {
        let nest = random_nest(&mut Random(seed));
        let (found, conflicts) = (analyze(&nest), conflicts(&nest, seed));
        let missed = missed(&found, &conflicts);
        assert!(missed.is_empty(), "nest {seed}: {missed:#?}\n{nest:#?}\n{found:#?}");
        let invented = invented(&nest, &found, &conflicts);
        assert!(invented.is_empty(), "nest {seed}: {invented:#?}\n{nest:#?}\n{found:#?}");
        total += conflicts.len();
        pairs += found.sets.len();
        exact += found.sets.iter().filter(|set| set.points.is_some()).count();
    }
    println!("{total} conflicts; of {pairs} pairs {exact} with their exact distances");
    assert!(total > 1000 && exact * 10 > pairs * 8, "{total} conflicts, {exact} of {pairs} pairs exact");
}

#[test]
fn order_does_not_change_what_conflicts() {
    for seed in 0..200 {
        let mut nest = random_nest(&mut Random(seed));
        let first = analyze(&nest);
        nest.order = if nest.order == Order::Ordered { Order::Unordered } else { Order::Ordered };
        assert_eq!(first, analyze(&nest));
    }
}
