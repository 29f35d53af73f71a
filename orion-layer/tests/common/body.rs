//! The body of every loop: it interprets the loop's accesses through the views.
use super::arrays::{Named, Seen};
use super::case::{LoopSpec, mix, unknown};
use hectare_orion::loop_nest::{Access, Subscript};

/// Runs one iteration; returns the mix of its id with all that it read.
pub fn iterate(shapes: &[Vec<usize>], spec: &LoopSpec, index: &[i64], id: u64, seen: &mut [Seen<'_>]) -> u64 {
    let inner = spec.inner_values();
    let mut hash = index.iter().fold(mix(1, id), |hash, i| mix(hash, *i as u64));
    for (number, access) in spec.accesses.iter().enumerate().filter(|(_, access)| access.mode.reads()) {
        let view = &seen[access.array];
        for_each_element(shapes, (number, access), index, id, &inner, |at| hash = mix(hash, view.get(at)));
    }
    for (number, access) in spec.accesses.iter().enumerate().filter(|(_, access)| access.mode.writes()) {
        let view = &mut seen[access.array];
        let mut value = mix(hash, number as u64);
        for_each_element(shapes, (number, access), index, id, &inner, |at| {
            value = mix(value, at.len() as u64);
            view.set(at, value);
        });
    }
    hash
}

/// Names what an iteration touches, as the slice of a body does.
pub fn name(shapes: &[Vec<usize>], spec: &LoopSpec, index: &[i64], id: u64, named: &[Named<'_>]) {
    let inner = spec.inner_values();
    for (number, access) in spec.accesses.iter().enumerate() {
        let (array, writes) = (&named[access.array], access.mode.writes());
        for_each_element(shapes, (number, access), index, id, &inner, |at| array.name(at, writes));
    }
}

/// Calls `visit` with every element that the access names.
fn for_each_element(
    shapes: &[Vec<usize>],
    (number, access): (usize, &Access),
    index: &[i64],
    id: u64,
    inner: &[Vec<i64>],
    mut visit: impl FnMut(&[usize]),
) {
    let shape = &shapes[access.array];
    for values in inner {
        let variables: Vec<i64> = index.iter().chain(values).copied().collect();
        let at = |form: &hectare_orion::loop_nest::Affine| form.eval(&variables).expect("small") as usize;
        let ranges: Vec<_> = (0..shape.len())
            .map(|dim| match &access.subscripts[dim] {
                Subscript::Index(form) => at(form)..at(form).wrapping_add(1),
                Subscript::Range(start, end) => at(start)..at(end),
                Subscript::Full => 0..shape[dim],
                Subscript::Unknown => {
                    let place = unknown(id, number, dim, shape[dim]);
                    place..place + 1
                }
            })
            .collect();
        // An index below zero is a range that ends below its start: it must reach the view all the same.
        let mut place: Vec<usize> = ranges.iter().map(|range| range.start).collect();
        if ranges.iter().any(|range| range.start == range.end) {
            continue;
        }
        'all: loop {
            visit(&place);
            let mut dim = place.len();
            loop {
                if dim == 0 {
                    break 'all;
                }
                dim -= 1;
                place[dim] = place[dim].wrapping_add(1);
                if place[dim] != ranges[dim].end {
                    break;
                }
                place[dim] = ranges[dim].start;
            }
        }
    }
}
