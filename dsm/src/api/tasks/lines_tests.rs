//! Lines against looks at each element.
use super::lines::{Line, Lines};
use super::patch::Patch;
use super::patches::Patches;
use crate::protocol::tasks::{Region, Span};
use proptest::prelude::*;

/// The index of element `n`; `None` if there is none.
fn index_at<const N: usize>(line: &Line<N>, n: usize) -> Option<[usize; N]> {
    let mut index = [0; N];
    for (k, at) in index.iter_mut().enumerate() {
        let value = line.first[k] as i128 + i128::from(line.step[k]) * n as i128;
        *at = usize::try_from(value).ok()?;
    }
    Some(index)
}

/// Lines have the elements that looks one by one find, and there are lines exactly if all are found.
fn agrees<const N: usize>(mut patches: Patches<'_, u32, N>, line: Line<N>, len: usize) {
    let looks: Option<Vec<*const u32>> = (0..len)
        .map(|n| {
            let index = index_at(&line, n)?;
            match line.writes {
                true => patches.get_mut(index).ok().map(|element| std::ptr::from_mut(element).cast_const()),
                false => patches.get(index).map(std::ptr::from_ref),
            }
        })
        .collect();
    let found = patches.lines([line], len).map(|lines| (0..len).map(|n| &raw const lines[(0, n)]).collect());
    assert_eq!(found, looks, "{line:?}");
}

proptest! {
    #[test]
    fn lines_of_a_part_have_the_elements_that_looks_find(
        rows in 1usize..6, columns in 1usize..7, ahead in 0usize..3,
        first in (0usize..9, 0usize..9), step in (-3i64..4, -3i64..4), len in 1usize..6, writes: bool,
    ) {
        let mut elements = vec![0u32; rows * columns];
        let part = Patches::of_parts(&[9, columns], vec![([ahead..ahead + rows, 0..columns], &mut elements[..])]);
        agrees(part, Line { first: [first.0, first.1], step: [step.0, step.1], writes }, len);
    }

    #[test]
    fn lines_between_elements_of_others_have_those_that_looks_find(
        start in 0usize..4, end in 0usize..40, step in 1usize..5,
        first in 0usize..40, by in -6i64..7, len in 2usize..8, writes: bool,
    ) {
        let mut elements = vec![0u32; 40];
        let region = Region { spans: vec![Span { start, end: end.max(start), step }] };
        let (read, write) = if writes { (None, Some(&region)) } else { (Some(&region), None) };
        // SAFETY: the elements live as long as the patch, and nobody else has them.
        let patch = unsafe { Patch::new(elements.as_mut_ptr(), &[40], read, write) };
        agrees(Patches::new(&[40], vec![patch]), Line { first: [first], step: [by], writes }, len);
    }

    /// A line lies in any one patch of the array, and not partly in two.
    #[test]
    fn lines_lie_in_all_patches(
        starts in prop::collection::vec((0usize..6, 0usize..6, 1usize..4, 1usize..7), 1..4),
        first in (0usize..8, 0usize..8), step in (-2i64..3, -2i64..3), len in 1usize..6, writes: bool,
    ) {
        let mut elements = vec![0u32; 10 * 13];
        let regions: Vec<Region> = starts.iter().map(|(i, j, rows, columns)| Region::of([*i..i + rows, *j..j + columns])).collect();
        let start = elements.as_mut_ptr();
        let patches = regions.iter().map(|region| {
            let (read, write) = if writes { (None, Some(region)) } else { (Some(region), None) };
            // SAFETY: the elements live as long as the patches, and nobody else has them.
            unsafe { Patch::new(start, &[10, 13], read, write) }
        });
        let line = Line { first: [first.0, first.1], step: [step.0, step.1], writes };
        let has_all = |region: &Region| (0..len).all(|n| {
            index_at(&line, n).is_some_and(|index| {
                index.iter().zip(&region.spans).all(|(at, span)| (span.start..span.end).contains(at))
            })
        });
        let wanted = regions.iter().any(has_all);
        let mut patches = Patches::new(&[10, 13], patches.collect());
        let found = patches.lines([line], len).map(|lines| {
            (0..len).map(|n| std::ptr::from_ref(&lines[(0, n)])).collect::<Vec<_>>()
        });
        let places = |n| start.cast_const().wrapping_add(index_at(&line, n).map_or(0, |[i, j]| i * 13 + j));
        prop_assert_eq!(found, wanted.then(|| (0..len).map(places).collect()));
    }

    #[test]
    fn lines_of_slices_lie_in_them(at in 0usize..12, stride in -4isize..5, len in 1usize..8) {
        let elements: Vec<u32> = (0..10).collect();
        let lines = Lines::of_slices([(&elements[..], at, stride)], len);
        let wanted: Option<Vec<u32>> = (0..len)
            .map(|n| usize::try_from(at as isize + stride * n as isize).ok().and_then(|at| elements.get(at).copied()))
            .collect();
        prop_assert_eq!(lines.map(|lines| (0..len).map(|n| lines[(0, n)]).collect()), wanted);
    }
}

/// All elements.
fn part_of(elements: &mut [u32; 8]) -> Patches<'_, u32, 1> {
    let all = 0..elements.len();
    Patches::of_parts(&[8], vec![([all], elements)])
}

#[test]
fn steps_that_wrap_around_are_no_lines() {
    let mut elements = [0u32; 8];
    for step in [i64::MAX, i64::MIN, 1 << 62] {
        let mut part = part_of(&mut elements);
        assert!(part.lines([Line { first: [1], step: [step], writes: false }], 9).is_none());
        drop(part);
        assert!(Lines::of_slices([(&elements[..], 1, step as isize)], 9).is_none());
    }
}

#[test]
#[should_panic(expected = "element 3 of a line of 3")]
fn what_lies_behind_a_line_is_refused() {
    let mut elements = [0u32; 8];
    let mut part = part_of(&mut elements);
    let lines = part.lines([Line { first: [1], step: [1], writes: false }], 3).unwrap();
    let _ = lines[(0, 3)];
}

#[test]
#[should_panic(expected = "line 0 is not to be written")]
fn a_line_to_be_read_is_not_written() {
    let mut elements = [0u32; 8];
    let mut part = part_of(&mut elements);
    let mut lines = part.lines([Line { first: [1], step: [1], writes: false }], 3).unwrap();
    lines[(0, 0)] = 1;
}

#[test]
fn who_is_watched_gets_no_lines() {
    let mut elements = [0u32; 8];
    let mut part = part_of(&mut elements).watched(Box::new(|_| {}));
    assert!(part.lines([Line { first: [1], step: [1], writes: false }], 3).is_none());
}

/// A line in a ghost region lies in other memory than the first patch, whatever the patches were before.
#[test]
fn no_line_is_looked_for_in_ghost_regions_by_where_the_first_patch_is() {
    let (mut elements, ghost) = (vec![0u32; 40], [7u32; 4]);
    let whole = Span { start: 0, end: 4, step: 1 };
    let region = Region { spans: vec![Span { start: 0, end: 3, step: 1 }, whole] };
    // SAFETY: the elements live as long as the patch, and nobody else has them.
    let patch = unsafe { Patch::new(elements.as_mut_ptr(), &[10, 4], Some(&region), None) };
    let ghosts = vec![([5..6, 0..4], &ghost[..])];
    let mut patches = Patches::new(&[10, 4], vec![patch]).with_ghosts(&[10, 4], ghosts);
    assert_eq!(patches.get([5, 1]), Some(&7));
    let line = |row: usize| Line { first: [row, 0], step: [0, 1], writes: false };
    assert!(patches.lines([line(5)], 4).is_none());
    assert!(patches.lines([line(2)], 4).is_some());
}
