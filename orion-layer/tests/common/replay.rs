//! The loops again, by other means: plain vectors, one iteration after the other, in a given order.
use super::case::{Case, LoopSpec, initial, mix, unknown};
use hectare_dependence::loop_nest::{Affine, Mode, Subscript};
use std::collections::BTreeMap;

/// All arrays, elements in row-major order.
pub type Memory = Vec<Vec<u64>>;

/// The arrays before the first pass.
pub fn initial_memory(case: &Case) -> Memory {
    let elements = |(array, shape): (usize, &Vec<usize>)| {
        (0..shape.iter().product()).map(|place| initial(array, place)).collect()
    };
    case.shapes.iter().enumerate().map(elements).collect()
}

/// The places that access `number` of the loop names in this iteration, in the order in which it touches them.
pub fn places(case: &Case, spec: &LoopSpec, number: usize, index: &[i64], id: u64) -> Vec<usize> {
    let access = &spec.accesses[number];
    let shape = &case.shapes[access.array];
    let mut all = Vec::new();
    for inner in spec.inner_values() {
        let value = |form: &Affine| {
            let variable = |k: usize| if k < index.len() { index[k] } else { inner[k - index.len()] };
            form.coefficients.iter().enumerate().map(|(k, c)| c * variable(k)).sum::<i64>() + form.constant
        };
        let mut some = vec![0usize];
        for (dim, extent) in shape.iter().enumerate() {
            let range = match &access.subscripts[dim] {
                Subscript::Index(form) => value(form)..value(form) + 1,
                Subscript::Range(start, end) => value(start)..value(end),
                Subscript::Full => 0..*extent as i64,
                Subscript::Unknown => {
                    let place = unknown(id, number, dim, *extent) as i64;
                    place..place + 1
                }
            };
            assert!(range.start >= 0 && range.end <= *extent as i64, "the generator keeps within bounds");
            let next = |place: usize| range.clone().map(move |at| place * extent + at as usize);
            some = some.into_iter().flat_map(next).collect();
        }
        all.extend(some);
    }
    all
}

/// Runs one iteration; returns the mix of its id with all that it read.
pub fn step(case: &Case, spec: &LoopSpec, index: &[i64], id: u64, memory: &mut Memory) -> u64 {
    let mut hash = mix(1, id);
    for i in index {
        hash = mix(hash, *i as u64);
    }
    for (number, access) in spec.accesses.iter().enumerate() {
        if access.mode != Mode::Write {
            for place in places(case, spec, number, index, id) {
                hash = mix(hash, memory[access.array][place]);
            }
        }
    }
    for (number, access) in spec.accesses.iter().enumerate() {
        if access.mode != Mode::Read {
            let mut value = mix(hash, number as u64);
            for place in places(case, spec, number, index, id) {
                value = mix(value, case.shapes[access.array].len() as u64);
                memory[access.array][place] = value;
            }
        }
    }
    hash
}

/// The elements that an iteration touches, and whether it writes them.
pub fn touched(case: &Case, spec: &LoopSpec, index: &[i64], id: u64) -> BTreeMap<(usize, usize), bool> {
    let mut all = BTreeMap::new();
    for (number, access) in spec.accesses.iter().enumerate() {
        for place in places(case, spec, number, index, id) {
            *all.entry((access.array, place)).or_insert(false) |= access.mode != Mode::Read;
        }
    }
    all
}
