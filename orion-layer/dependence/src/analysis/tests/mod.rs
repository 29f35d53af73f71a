//! Checks of the analysis from outside: against enumeration, against isl, against a table of decisions, and whether
//! those checks notice faults.
use super::{Dependences, Distance, analyze};
use crate::loop_nest::*;

mod decisions;
mod fixtures;
mod hard;
mod mutants;
mod oracle;
mod random;

/// A variable with these bounds.
fn var(name: &str, bounds: impl Into<Option<(i64, i64)>>) -> LoopVar {
    LoopVar { name: name.into(), bounds: bounds.into() }
}

/// `constant + Σ factors · variables`.
fn form(constant: i64, factors: &[i64]) -> Affine {
    Affine { constant, coefficients: factors.to_vec() }
}

/// `constant + Σ factors · variables`, as a subscript.
fn at(constant: i64, factors: &[i64]) -> Subscript {
    Subscript::Index(form(constant, factors))
}

/// A nest over these dimensions, bounded by 0 and these extents.
fn nest(order: Order, space: Space, extents: &[i64]) -> LoopNest {
    let dims = extents.iter().zip(["i", "j", "k", "l"]).map(|(extent, name)| var(name, (0, *extent)));
    LoopNest::new("test", order, space, dims.collect())
}

/// Adds an access.
fn access(nest: &mut LoopNest, array: usize, mode: Mode, subscripts: Vec<Subscript>) {
    while nest.arrays.len() <= array {
        let name = format!("a{}", nest.arrays.len());
        nest.arrays.push(NamedArray { name, shape: vec![100; subscripts.len()], element_bytes: 4 });
    }
    let text = format!("a{array}{subscripts:?}");
    nest.accesses.push(Access { array, subscripts, mode, text, line: 0 });
}

/// The vectors as text, each once, sorted.
fn vectors(found: &Dependences) -> Vec<String> {
    let mut texts: Vec<String> = found.list.iter().map(|dependence| dependence.to_string()).collect();
    texts.sort();
    texts.dedup();
    texts
}
