//! A table of loops, and how each may run.
use super::super::distance::NEGATIVE;
use super::*;

/// How a loop may run, as far as its dependences decide.
#[derive(Debug, PartialEq, Eq)]
enum Class {
    /// Everything at the same time.
    Parallel,
    /// Parts of these dimensions at the same time, each by itself.
    OneDim(&'static [usize]),
    /// Parts that differ in all of these dimensions at the same time.
    Rotation(&'static [usize]),
    /// Ordered: along wavefronts, as no distance is negative.
    Wavefront,
    /// Ordered: along wavefronts after skewing, since distances are known.
    Skewed,
    /// One iteration after the other.
    Serial,
}

/// The class of a loop: the simplest one that its vectors allow.
fn class(nest: &LoopNest) -> Class {
    let found = analyze(nest);
    let leak = |dims: Vec<usize>| -> &'static [usize] { dims.leak() };
    if found.is_empty() {
        return Class::Parallel;
    }
    // Iterations with different indices in a dimension in which every vector is zero never conflict.
    let is_zero = |dim: &usize| found.list.iter().all(|dependence| dependence.vector[*dim].is_zero());
    let zero: Vec<usize> = (0..nest.dims.len()).filter(is_zero).collect();
    if !zero.is_empty() {
        return Class::OneDim(leak(zero));
    }
    if nest.order == Order::Unordered {
        return match found.rotation_sets().into_iter().next() {
            Some(dims) => Class::Rotation(leak(dims)),
            None => Class::Serial,
        };
    }
    let all = |test: fn(&Distance) -> bool| found.list.iter().all(|d| d.vector.iter().all(test));
    match nest.dims.len() {
        1 => Class::Serial,
        _ if all(|distance| distance.signs() & NEGATIVE == 0) => Class::Wavefront,
        _ if all(|distance| matches!(distance, Distance::Exact(_))) => Class::Skewed,
        _ => Class::Serial,
    }
}

fn dense(order: Order, extents: &[i64]) -> LoopNest {
    nest(order, Space::Dense, extents)
}

fn entries(extents: &[i64]) -> LoopNest {
    nest(Order::Unordered, Space::Entries { array: "entries".into(), count: 10_000 }, extents)
}

/// The loop with these accesses: array, mode, subscripts.
fn with(mut nest: LoopNest, accesses: &[(usize, Mode, &[Subscript])]) -> LoopNest {
    for (array, mode, subscripts) in accesses {
        access(&mut nest, *array, *mode, subscripts.to_vec());
    }
    nest
}

use Mode::{Read, Update, Write};
use Order::{Ordered, Unordered};
use Subscript::{Full, Range, Unknown};

/// A loop, how it may run, and its vectors.
type Case = (&'static str, LoopNest, Class, &'static [&'static str]);

fn learning() -> Vec<Case> {
    let (i, j, k) = (at(0, &[1]), at(0, &[0, 1]), at(0, &[0, 0, 1]));
    let row = |index: &Subscript| [index.clone(), Full];
    let (u, v) = (row(&i), row(&j));
    vec![
        (
            "matrix factorization over the entries of a sparse matrix",
            with(entries(&[1000, 2000]), &[(0, Update, &u), (1, Update, &v)]),
            Class::Rotation(&[0, 1]),
            &["(0, 0+)", "(0+, 0)"],
        ),
        (
            "matrix factorization over a dense matrix",
            with(dense(Unordered, &[1000, 2000]), &[(0, Update, &u), (1, Update, &v)]),
            Class::Rotation(&[0, 1]),
            &["(+, 0)", "(0, +)"],
        ),
        (
            "matrix factorization, reads and writes apart",
            with(entries(&[9, 9]), &[(0, Read, &u), (1, Read, &v), (0, Write, &u), (1, Write, &v)]),
            Class::Rotation(&[0, 1]),
            &["(0, 0+)", "(0+, 0)"],
        ),
        (
            "matrix factorization, ordered",
            with(dense(Ordered, &[1000, 2000]), &[(0, Update, &u), (1, Update, &v)]),
            Class::Wavefront,
            &["(+, 0)", "(0, +)"],
        ),
        (
            "CP decomposition of a tensor of order 3",
            with(
                entries(&[50, 60, 70]),
                &[(0, Update, &row(&i)), (1, Update, &row(&j)), (2, Update, &row(&k))],
            ),
            Class::Rotation(&[0, 1, 2]),
            &["(+, *, 0)", "(+, 0, *)", "(0, +, *)", "(0, 0+, 0)", "(0, 0, 0+)"],
        ),
        (
            "LDA: topics of documents and of words",
            with(entries(&[300, 5000]), &[(0, Update, &u), (1, Update, &v)]),
            Class::Rotation(&[0, 1]),
            &["(0, 0+)", "(0+, 0)"],
        ),
        (
            "LDA with topic totals",
            with(entries(&[300, 5000]), &[(0, Update, &u), (1, Update, &v), (2, Update, &[Full])]),
            Class::Serial,
            &["(+, *)", "(0, 0+)", "(0+, 0)"],
        ),
        (
            "one factor fixed",
            with(entries(&[1000, 2000]), &[(0, Update, &u), (1, Read, &v)]),
            Class::OneDim(&[0]),
            &["(0, 0+)"],
        ),
        (
            "sparse logistic regression: weights by data",
            with(dense(Unordered, &[5000]), &[(0, Update, &[Unknown])]),
            Class::Serial,
            &["(+)"],
        ),
        (
            "entries updated in place: two entries may share an index",
            with(entries(&[100, 100]), &[(0, Update, &[i.clone(), j.clone()])]),
            Class::OneDim(&[0, 1]),
            &["(0, 0)"],
        ),
    ]
}

fn one_dimension() -> Vec<Case> {
    let line = |order: Order, accesses: &[(usize, Mode, &[Subscript])]| with(dense(order, &[100]), accesses);
    vec![
        (
            "a map",
            line(Ordered, &[(0, Write, &[at(0, &[1])]), (1, Read, &[at(0, &[1])])]),
            Class::Parallel,
            &[],
        ),
        ("only reads", line(Ordered, &[(0, Read, &[Unknown])]), Class::Parallel, &[]),
        (
            "A[i] from A[i - 1]",
            line(Ordered, &[(0, Write, &[at(0, &[1])]), (0, Read, &[at(-1, &[1])])]),
            Class::Serial,
            &["(+1)"],
        ),
        (
            "A[i] from A[i + 1]",
            line(Ordered, &[(0, Write, &[at(0, &[1])]), (0, Read, &[at(1, &[1])])]),
            Class::Serial,
            &["(+1)"],
        ),
        (
            "even from odd",
            line(Ordered, &[(0, Write, &[at(0, &[2])]), (0, Read, &[at(1, &[2])])]),
            Class::Parallel,
            &[],
        ),
        (
            "beyond the bounds",
            line(Ordered, &[(0, Write, &[at(0, &[1])]), (0, Read, &[at(100, &[1])])]),
            Class::Parallel,
            &[],
        ),
        (
            "reversal: A[i] from A[99 - i]",
            line(Ordered, &[(0, Write, &[at(0, &[1])]), (0, Read, &[at(99, &[-1])])]),
            Class::Serial,
            &["(+)"],
        ),
        (
            "A[i] from A[200 - i]",
            line(Ordered, &[(0, Write, &[at(0, &[1])]), (0, Read, &[at(200, &[-1])])]),
            Class::Parallel,
            &[],
        ),
        ("reduction into one cell", line(Unordered, &[(0, Update, &[at(7, &[])])]), Class::Serial, &["(+)"]),
        (
            "one cell is read, others are written",
            line(Ordered, &[(0, Read, &[at(-1, &[])]), (0, Write, &[at(0, &[1])])]),
            Class::Parallel,
            &[],
        ),
        (
            "two writes of an iteration, no reads, unordered",
            line(Unordered, &[(0, Write, &[at(0, &[1])]), (0, Write, &[at(1, &[1])])]),
            Class::Serial,
            &["(+1)"],
        ),
        (
            "a block of its own",
            line(Ordered, &[(0, Update, &[Range(form(0, &[4]), form(4, &[4]))])]),
            Class::Parallel,
            &[],
        ),
        (
            "overlapping blocks",
            line(Ordered, &[(0, Update, &[Range(form(0, &[4]), form(6, &[4]))])]),
            Class::Serial,
            &["(+1)"],
        ),
    ]
}

fn two_dimensions() -> Vec<Case> {
    let plane =
        |order: Order, accesses: &[(usize, Mode, &[Subscript])]| with(dense(order, &[100, 100]), accesses);
    let cell = |di: i64, dj: i64| [at(di, &[1]), at(dj, &[0, 1])];
    let transposed = [at(0, &[0, 1]), at(0, &[1])];
    vec![
        (
            "Gauss-Seidel",
            plane(
                Ordered,
                &[
                    (0, Write, &cell(0, 0)),
                    (0, Read, &cell(-1, 0)),
                    (0, Read, &cell(1, 0)),
                    (0, Read, &cell(0, -1)),
                    (0, Read, &cell(0, 1)),
                ],
            ),
            Class::Wavefront,
            &["(+1, 0)", "(0, +1)"],
        ),
        (
            "Jacobi",
            plane(Ordered, &[(0, Write, &cell(0, 0)), (1, Read, &cell(-1, 0)), (1, Read, &cell(1, 0))]),
            Class::Parallel,
            &[],
        ),
        (
            "a row from the row above",
            plane(Ordered, &[(0, Write, &cell(0, 0)), (0, Read, &cell(-1, 0))]),
            Class::OneDim(&[1]),
            &["(+1, 0)"],
        ),
        (
            "from above on the right",
            plane(Ordered, &[(0, Write, &cell(0, 0)), (0, Read, &cell(-1, 1)), (0, Read, &cell(0, -1))]),
            Class::Skewed,
            &["(+1, -1)", "(0, +1)"],
        ),
        (
            "any in front of a fixed distance",
            plane(Ordered, &[(0, Write, &[at(0, &[0, 1])]), (0, Read, &[at(-1, &[0, 1])])]),
            Class::Serial,
            &["(+, +1)", "(+, -1)", "(+, 0)", "(0, +1)"],
        ),
        (
            "transpose in place",
            plane(Unordered, &[(0, Write, &cell(0, 0)), (0, Read, &transposed)]),
            Class::Serial,
            &["(+, -)"],
        ),
        ("anti-diagonals", plane(Ordered, &[(0, Update, &[at(0, &[1, 1])])]), Class::Serial, &["(+, -)"]),
        (
            "sums of rows",
            plane(Unordered, &[(0, Update, &[at(0, &[1])]), (1, Read, &cell(0, 0))]),
            Class::OneDim(&[0]),
            &["(0, +)"],
        ),
        (
            "write-write only",
            plane(Unordered, &[(0, Write, &[at(0, &[1])]), (1, Write, &[at(0, &[0, 1])])]),
            Class::Rotation(&[0, 1]),
            &["(+, 0)", "(0, +)"],
        ),
        (
            "one row is read, all others are written",
            plane(Ordered, &[(0, Read, &[at(-1, &[]), Full]), (0, Write, &cell(0, 0))]),
            Class::Parallel,
            &[],
        ),
    ]
}

#[test]
fn every_loop_of_the_table_gets_its_class() {
    let mut wrong = Vec::new();
    for (name, nest, expected, texts) in learning().into_iter().chain(one_dimension()).chain(two_dimensions())
    {
        let mut texts = texts.to_vec();
        texts.sort_unstable();
        let (found, class) = (vectors(&analyze(&nest)), class(&nest));
        if found != texts || class != expected {
            wrong.push(format!("{name}: {class:?} {found:?} instead of {expected:?} {texts:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_rotation_needs_a_zero_of_every_dependence() {
    let mut nest = dense(Unordered, &[10, 10]);
    access(&mut nest, 0, Update, vec![at(0, &[1])]);
    access(&mut nest, 1, Update, vec![at(0, &[0, 1])]);
    let found = analyze(&nest);
    let vectors: Vec<_> = found.list.iter().map(|one| (one.array, one.to_string())).collect();
    assert!(vectors.contains(&(1, "(+, 0)".into())), "{vectors:?}");
    assert_eq!(found.rotation_sets(), [[0, 1]]);
}

#[test]
fn rotation_sets_are_minimal_and_complete() {
    // u[i] and v[j, k]: zero in i, or zero in j and in k.
    let mut nest = dense(Unordered, &[10, 10, 10]);
    access(&mut nest, 0, Update, vec![at(0, &[1])]);
    access(&mut nest, 1, Update, vec![at(0, &[0, 1]), at(0, &[0, 0, 1])]);
    assert_eq!(analyze(&nest).rotation_sets(), [[0, 1], [0, 2]]);
    assert_eq!(analyze(&dense(Unordered, &[10])).rotation_sets(), [[0usize; 0]]);
    access(&mut nest, 2, Update, vec![at(0, &[])]);
    assert!(analyze(&nest).rotation_sets().is_empty());
}
