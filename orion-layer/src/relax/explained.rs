//! How an array whose dependences are relaxed is shared, and what is guaranteed instead, in words.
use super::{Consistency, Relaxation, Treatment};
use crate::text::counted;
use hectare_dependence::loop_nest::LoopNest;
use std::fmt;

/// Subscripts that are told of, at most.
const TOLD: usize = 4;

/// How a loop treats its arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    pub(crate) treatments: Vec<Treatment>,
    /// Whether a slice of the body names what it uses of served arrays.
    pub(crate) has_slice: bool,
    /// Whether workers are on several hosts.
    pub(crate) spans_hosts: bool,
}

impl Sharing {
    /// The promise of a loop that was given `relax`: `None` if it has no array that this is about.
    pub(crate) fn promise(&self, relax: Relaxation) -> Option<Relaxation> {
        let is_about = |how: &Treatment| !matches!(how, Treatment::Exact | Treatment::Collected);
        // Without clocks, there is nothing to say of how often they come.
        let promise = if relax.is_exact() { Relaxation::default() } else { relax };
        self.treatments.iter().any(is_about).then_some(promise)
    }
}

/// As in the head of a loop.
impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consistency = {:?}", self.consistency)?;
        if self.is_exact() {
            return Ok(());
        }
        write!(f, ", every = {:?}", self.every)?;
        if self.tail.is_none() { Ok(()) } else { write!(f, ", tail = {:?}", self.tail) }
    }
}

impl Consistency {
    /// The values that an iteration reads, and for whom its worker waits, in words.
    pub(crate) fn description(self) -> String {
        let own = "reads see the worker's own changes";
        match self {
            Consistency::Serializable => {
                "all dependences are preserved: reads see the results of the iterations before them".into()
            }
            Consistency::Bsp => {
                format!("{own}, and everybody's up to its last clock, at which all wait for each other")
            }
            Consistency::UNBOUNDED => {
                format!(
                    "{own}, and those that others had published at its last clock; nobody waits for others"
                )
            }
            Consistency::Bounded(bound) => {
                let clocks = counted(bound, "clock");
                format!(
                    "{own}, and everybody's up to at least {clocks} ago; workers that are further ahead wait"
                )
            }
            Consistency::Async => {
                "relaxed arrays are read and changed in place or, if that is faster, in copies as under \
                                   UNBOUNDED; buffers are read as they are merged; nobody waits for others"
                    .into()
            }
        }
    }
}

/// Explains how loop `nest` shares array `array`, whose dependences it gives up.
pub(crate) fn explained(nest: &LoopNest, array: usize, sharing: &Sharing) -> String {
    match sharing.treatments.get(array).copied().unwrap_or(Treatment::Exact) {
        Treatment::Exact => "all of it used by every worker".into(),
        Treatment::Collected => "every worker sees its state when the pass began, and contributes to it".into(),
        Treatment::Relaxed => "relaxed: every worker reads and changes all of it".into(),
        Treatment::Buffered => {
            "buffered: every worker reads a copy of all of it as of its last clock, and contributes; its dependences are \
             relaxed"
                .into()
        }
        Treatment::Served => served(nest, array, sharing),
    }
}

fn served(nest: &LoopNest, array: usize, sharing: &Sharing) -> String {
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
    let fetched = match sharing.has_slice {
        true => format!(
            "a slice of the body finds the {keys}, of {all}, that {uses} will use before the next clock, and those that have \
             changed are fetched in bulk"
        ),
        false => format!(
            "the {keys}, of {all}, are not prefetched: {uses} are looked up one by one, except for keys that `intend` names"
        ),
    };
    let bytes = of.shape.iter().product::<usize>() * of.element_bytes;
    let merged = match sharing.spans_hosts {
        true => "sent to all workers at clocks, each of which merges them into its own copy",
        false => "merged at clocks, each at the home of its key",
    };
    format!(
        "served: {fetched}; contributions are {merged}; its dependences are relaxed. \
         (`buffer` would copy all of it, {}, at every clock; `relax` with `Async` would read and change it in place, with \
         unbounded staleness)",
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
