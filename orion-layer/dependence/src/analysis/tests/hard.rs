//! Bounds and factors at the edges of their types, and the price of an analysis.
use super::super::{Exactness, Kind};
use super::*;

#[test]
fn exact_distances_do_not_depend_on_the_extent() {
    for extent in [3, 1_000, 1 << 40] {
        let mut nest = nest(Order::Ordered, Space::Dense, &[extent, extent]);
        access(&mut nest, 0, Mode::Write, vec![at(0, &[2, 1]), at(0, &[1, 1])]);
        access(&mut nest, 0, Mode::Read, vec![at(-1, &[2, 1]), at(0, &[1, 1])]);
        let found = analyze(&nest);
        assert_eq!(found.distances(0, 1), Some(&[vec![1, -1]][..]));
        assert_eq!((vectors(&found), found.list[0].kind), (vec!["(+1, -1)".to_string()], Kind::Flow));
        assert_eq!(found.list[0].exactness, Exactness::Points);
    }
}

#[test]
fn bounds_that_are_not_known_do_not_bound() {
    let mut nest = LoopNest::new("test", Order::Ordered, Space::Dense, vec![var("i", None)]);
    access(&mut nest, 0, Mode::Write, vec![at(0, &[1])]);
    access(&mut nest, 0, Mode::Read, vec![at(-1_000_000, &[1])]);
    assert_eq!(vectors(&analyze(&nest)), ["(+1000000)"]);
    access(&mut nest, 0, Mode::Read, vec![at(0, &[-1])]);
    let found = analyze(&nest);
    assert_eq!(vectors(&found), ["(+)", "(+1000000)"]);
    assert!(found.distances(0, 2).is_none(), "infinitely many");
}

#[test]
fn empty_loops_and_single_iterations_have_no_dependences() {
    for (extents, space) in [
        ([0, 10], Space::Dense),
        ([1, 1], Space::Dense),
        ([10, 10], Space::Entries { array: "x".into(), count: 1 }),
    ] {
        let mut nest = nest(Order::Unordered, space, &extents);
        access(&mut nest, 0, Mode::Update, vec![at(0, &[])]);
        access(&mut nest, 1, Mode::Update, vec![Subscript::Unknown]);
        assert!(analyze(&nest).is_empty(), "{extents:?}");
    }
    // An access inside of an empty inner loop never happens; one that does not name its variable may.
    let mut nest = nest(Order::Unordered, Space::Dense, &[10]);
    nest.inner.push(var("m", (3, 3)));
    access(&mut nest, 0, Mode::Update, vec![at(0, &[0, 1])]);
    assert!(analyze(&nest).is_empty());
    access(&mut nest, 1, Mode::Update, vec![at(0, &[])]);
    assert_eq!(vectors(&analyze(&nest)), ["(+)"]);
}

#[test]
fn an_inner_loop_without_known_bounds_reaches_everything() {
    // a[i + 100] is what another iteration's a[i + m] may be, although the quick tests see i < 4 only.
    let mut nest = nest(Order::Ordered, Space::Dense, &[4]);
    nest.inner.push(var("m", None));
    access(&mut nest, 0, Mode::Write, vec![at(100, &[1])]);
    access(&mut nest, 0, Mode::Read, vec![at(0, &[1, 1])]);
    let found = analyze(&nest);
    for (source, sink) in [(0, 1), (1, 0)] {
        let mut between = found.list.iter().filter(|d| (d.source, d.sink) == (source, sink));
        assert!(between.any(|d| d.covers(&[1]) && d.covers(&[3])), "{:?}", found.list);
    }
}

#[test]
fn what_may_wrap_is_unknown() {
    // i64::MAX * i wraps around from i = 2 on, so that index -2 is reached, although no multiple of the factor is.
    let huge = [at(0, &[i64::MAX]), at(i64::MAX, &[1]), at(i64::MIN, &[1]), at(0, &[1 << 40])];
    for subscript in huge {
        let mut nest = LoopNest::new("test", Order::Ordered, Space::Dense, vec![var("i", (0, 1 << 40))]);
        access(&mut nest, 0, Mode::Write, vec![subscript.clone()]);
        access(&mut nest, 0, Mode::Read, vec![at(1, &[0])]);
        let found = analyze(&nest);
        let pair = found.list.iter().find(|d| (d.source, d.sink) == (0, 1)).unwrap();
        assert_eq!((pair.to_string().as_str(), pair.exactness), ("(+)", Exactness::Assumed), "{subscript:?}");
        assert!(found.distances(0, 1).is_none());
    }
}

#[test]
fn the_widest_bounds_do_not_overflow() {
    let widest = (i64::MIN, i64::MAX);
    let dims = vec![var("i", widest), var("j", widest), var("k", widest)];
    let mut nest = LoopNest::new("test", Order::Ordered, Space::Dense, dims);
    access(&mut nest, 0, Mode::Update, vec![at(0, &[1]), at(0, &[0, 1])]);
    access(&mut nest, 0, Mode::Update, vec![at(0, &[1]), at(0, &[0, -1])]);
    access(
        &mut nest,
        0,
        Mode::Read,
        vec![Subscript::Full, Subscript::Range(form(0, &[1]), form(1, &[0, 1]))],
    );
    access(&mut nest, 0, Mode::Write, vec![Subscript::Unknown, at(3, &[2, 2, 2])]);
    let found = analyze(&nest);
    assert!(found.list.iter().all(|d| d.vector.len() == 3) && !found.is_empty());
    // The sink k may lie farther from the source than 64 bits tell.
    assert!(found.list.iter().any(|d| d.extents.contains(&(Some(1), None))));
}

#[test]
fn variables_that_do_not_exist_are_unknown() {
    let mut nest = nest(Order::Ordered, Space::Dense, &[10]);
    access(&mut nest, 0, Mode::Write, vec![at(0, &[1, 0, 0, 5])]);
    let found = analyze(&nest);
    assert_eq!((vectors(&found), found.list[0].exactness), (vec!["(+)".to_string()], Exactness::Assumed));
}

#[test]
fn accesses_with_fewer_subscripts_name_everything_below() {
    let mut nest = nest(Order::Ordered, Space::Dense, &[10, 10]);
    access(&mut nest, 0, Mode::Write, vec![at(0, &[1])]);
    access(&mut nest, 0, Mode::Read, vec![at(-1, &[1]), at(0, &[0, 1])]);
    assert_eq!(vectors(&analyze(&nest)), ["(+1, *)", "(0, +)"]);
}

/// Accesses that couple all variables, in five dimensions of a million each.
fn tangled(accesses: usize) -> LoopNest {
    let bounds = (0, 1_000_000);
    let dims = ["a", "b", "c", "d", "e"].map(|name| var(name, bounds));
    let mut nest = LoopNest::new("test", Order::Ordered, Space::Dense, dims.to_vec());
    nest.inner = vec![var("m", bounds), var("n", bounds)];
    for k in 0..accesses as i64 {
        let subscripts = (0..3).map(|m| at(k - m, &[7 + m, -11, 13 + k, 17, -19 - m, 23, -29 + k])).collect();
        access(&mut nest, 0, Mode::Update, subscripts);
    }
    nest
}

#[test]
fn the_price_is_bounded_and_what_remains_open_is_assumed() {
    let found = analyze(&tangled(12));
    // Whatever the budget left open is covered: every lexicographically positive distance of the diagonal.
    assert!(found.list.iter().any(|d| d.exactness == Exactness::Assumed));
    for distance in [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [5, -3, 2, -1, 4]] {
        assert!(
            found.list.iter().filter(|d| (d.source, d.sink) == (0, 0)).any(|d| d.covers(&distance))
                || !solves(distance)
        );
    }
}

/// Whether access 0 of [`tangled`] conflicts with itself at this distance, for some values of the inner variables.
fn solves(distance: [i64; 5]) -> bool {
    let rows =
        (0..3).map(|m| [7 + m, -11, 13, 17, -19 - m].iter().zip(&distance).map(|(c, d)| c * d).sum::<i64>());
    let rest: Vec<i64> = rows.collect();
    // The inner variables add the same to each subscript.
    rest.iter().all(|r| *r == rest[0])
}

#[test]
#[ignore = "prints times; run with --release -- --ignored --nocapture"]
fn times() {
    let mut mf = nest(Order::Unordered, Space::Entries { array: "r".into(), count: 100 }, &[480_000, 17_000]);
    access(&mut mf, 0, Mode::Update, vec![at(0, &[1]), Subscript::Full]);
    access(&mut mf, 1, Mode::Update, vec![at(0, &[0, 1]), Subscript::Full]);
    let plane = |extent: i64| {
        let mut stencil = nest(Order::Ordered, Space::Dense, &[extent, extent]);
        access(&mut stencil, 0, Mode::Write, vec![at(0, &[1]), at(0, &[0, 1])]);
        for (di, dj) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
            access(&mut stencil, 0, Mode::Read, vec![at(di, &[1]), at(dj, &[0, 1])]);
        }
        stencil
    };
    let mut all = nest(Order::Ordered, Space::Dense, &[16, 16]);
    access(&mut all, 0, Mode::Update, vec![at(0, &[])]);
    for (name, nest) in [
        ("mf", mf),
        ("stencil 100", plane(100)),
        ("stencil 1e9", plane(1_000_000_000)),
        ("one cell, 16 x 16", all),
        ("tangled, 1 access", tangled(1)),
        ("tangled, 4", tangled(4)),
        ("tangled, 12", tangled(12)),
        ("tangled, 40", tangled(40)),
    ] {
        let (start, found) = (std::time::Instant::now(), analyze(&nest));
        println!("{name}: {:?}, {} vectors", start.elapsed(), found.list.len());
    }
}
