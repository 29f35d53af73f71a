//! Results of isl for random nests, from the fixtures (`tests/fixtures`).
use crate::loop_nest::{Affine, LoopVar, Subscript};
use serde_json::Value;

/// The lines of a fixture.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Variables with these bounds, named after `name`.
pub(crate) fn variables(bounds: &Value, name: &str) -> Vec<LoopVar> {
    let bounds: Vec<(i64, i64)> = serde_json::from_value(bounds.clone()).unwrap();
    let variable = |(k, bounds)| LoopVar { name: format!("{name}{k}"), bounds: Some(bounds) };
    bounds.into_iter().enumerate().map(variable).collect()
}

/// The subscripts of an access.
pub(crate) fn subscripts(value: &Value) -> Vec<Subscript> {
    let affine = |value: &Value| {
        let numbers: Vec<i64> = serde_json::from_value(value.clone()).unwrap();
        Affine { constant: numbers[0], coefficients: numbers[1..].to_vec() }
    };
    let subscript = |value: &Value| match value[0].is_array() {
        true => Subscript::Range(affine(&value[0]), affine(&value[1])),
        false => Subscript::Index(affine(value)),
    };
    value.as_array().unwrap().iter().map(subscript).collect()
}
