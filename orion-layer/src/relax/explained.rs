//! How an array whose dependences are given up is shared, in words.
use super::Treatment;
use crate::loop_nest::LoopNest;

/// Subscripts that are told of, at most.
const TOLD: usize = 4;

/// How a loop treats its arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    pub(crate) treatments: Vec<Treatment>,
    /// Whether a slice of the body names what it uses of served arrays.
    pub(crate) foresees: bool,
}

/// What happens to array `array` in loop `nest`, which gives its dependences up.
pub(crate) fn explained(nest: &LoopNest, array: usize, sharing: &Sharing) -> String {
    match sharing.treatments.get(array).copied().unwrap_or(Treatment::Exact) {
        Treatment::Exact => "all of it used by every worker".into(),
        Treatment::Collected => "every worker sees what it was when the pass began, and contributes to it".into(),
        Treatment::Relaxed => "relaxed: every worker reads and changes all of it; its dependences are given up".into(),
        Treatment::Buffered => {
            "buffered: every worker reads a copy of all of it as of its last clock, and contributes; its dependences are \
             given up"
                .into()
        }
        Treatment::Served => served(nest, array, sharing.foresees),
    }
}

fn served(nest: &LoopNest, array: usize, foresees: bool) -> String {
    let of = &nest.arrays[array];
    let (keys, all) = match of.shape.len() {
        1 => ("elements", of.shape[0]),
        dims => ("rows", of.shape[..dims - 1].iter().product()),
    };
    let mut uses: Vec<&str> = Vec::new();
    for access in nest.accesses_of(array) {
        if !uses.contains(&access.text.as_str()) {
            uses.push(&access.text);
        }
    }
    let more = if uses.len() > TOLD { ", ..." } else { "" };
    let uses = format!("{}{more}", uses[..uses.len().min(TOLD)].join(", "));
    let fetched = match foresees {
        true => format!(
            "the {keys}, of {all}, that {uses} will use before the next clock are found out by a slice of the body, and those \
             that have changed are fetched at once"
        ),
        false => format!(
            "which {keys}, of {all}, are used is not found out before: {uses} are looked up one by one, but for keys that \
             `intend` names"
        ),
    };
    let bytes = of.shape.iter().product::<usize>() * of.element_bytes;
    format!(
        "served: {fetched}; contributions are merged at clocks where each key has its home; its dependences are given up. \
         (`buffer` would copy all of it, {}, at every clock; `relax` with `Async` would read and change it in place, without a \
         bound on staleness)",
        size(bytes)
    )
}

fn size(bytes: usize) -> String {
    match bytes as f64 {
        b if b < 1e3 => format!("{b} bytes"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b => format!("{:.1} MB", b / 1e6),
    }
}
