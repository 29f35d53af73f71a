//! A test case: arrays, a space, and loops over it.
use hectare_dependence::loop_nest::{Access, LoopNest, LoopVar, Order, Space, Subscript};
use std::fmt;
use std::ops::Range;

/// The space of all loops of a case.
#[derive(Clone, Debug)]
pub enum SpaceSpec {
    Dense(Vec<Range<usize>>),
    /// Entry `k` has key `keys[k]` and value `k`.
    Entries {
        shape: Vec<usize>,
        keys: Vec<Vec<usize>>,
    },
}

impl SpaceSpec {
    pub fn dims(&self) -> usize {
        match self {
            SpaceSpec::Dense(ranges) => ranges.len(),
            SpaceSpec::Entries { shape, .. } => shape.len(),
        }
    }

    /// The values of each dimension.
    pub fn bounds(&self) -> Vec<(i64, i64)> {
        match self {
            SpaceSpec::Dense(ranges) => ranges.iter().map(|r| (r.start as i64, r.end as i64)).collect(),
            SpaceSpec::Entries { shape, .. } => shape.iter().map(|extent| (0, *extent as i64)).collect(),
        }
    }

    /// Whether no two iterations have the same index.
    pub fn has_distinct_keys(&self) -> bool {
        let SpaceSpec::Entries { keys, .. } = self else { return true };
        let mut sorted: Vec<&Vec<usize>> = keys.iter().collect();
        sorted.sort();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// All iterations in lexicographic order: index and id. Entries with one key are in the order of their ids.
    pub fn iterations(&self) -> Vec<Iteration> {
        match self {
            SpaceSpec::Entries { keys, .. } => {
                let index = |key: &Vec<usize>| key.iter().map(|k| *k as i64).collect();
                let mut list: Vec<Iteration> =
                    keys.iter().enumerate().map(|(id, key)| (index(key), id as u64)).collect();
                list.sort();
                list
            }
            SpaceSpec::Dense(ranges) => {
                let mut list = vec![Vec::new()];
                for range in ranges {
                    let longer = |index: Vec<i64>| {
                        range.clone().map(move |i| index.iter().copied().chain([i as i64]).collect())
                    };
                    list = list.into_iter().flat_map(longer).collect();
                }
                list.into_iter().map(|index: Vec<i64>| (index.clone(), dense_id(&index))).collect()
            }
        }
    }
}

/// The index of an iteration, and a number that no other iteration of the space has.
pub type Iteration = (Vec<i64>, u64);

/// The id of an iteration of a dense space.
pub fn dense_id(index: &[i64]) -> u64 {
    index.iter().fold(0, |id, i| id << 20 | *i as u64)
}

/// One loop.
#[derive(Clone, Debug)]
pub struct LoopSpec {
    pub order: Order,
    /// The values of the variables of inner loops, which an access runs through by itself.
    pub inner: Vec<(i64, i64)>,
    /// The size of an element that the cost model is told; it decides whether parallel schedules pay.
    pub element_bytes: usize,
    /// Whether a slice says beforehand what it touches.
    pub inspected: bool,
    pub accesses: Vec<Access>,
}

impl LoopSpec {
    /// Completes a description, as a macro would.
    pub fn describe(&self, nest: &mut LoopNest) {
        let name = |k: usize| format!("k{k}");
        let inner = self.inner.iter().enumerate();
        nest.inner = inner.map(|(k, bounds)| LoopVar { name: name(k), bounds: Some(*bounds) }).collect();
        nest.accesses = self.accesses.clone();
        nest.arrays.iter_mut().for_each(|array| array.element_bytes = self.element_bytes);
    }

    pub fn writes(&self, array: usize) -> bool {
        self.accesses.iter().any(|access| access.array == array && access.mode.writes())
    }

    /// All values of the inner variables.
    pub fn inner_values(&self) -> Vec<Vec<i64>> {
        let mut list = vec![Vec::new()];
        for &(start, end) in &self.inner {
            let longer = |values: Vec<i64>| {
                (start..end).map(move |value| values.iter().copied().chain([value]).collect())
            };
            list = list.into_iter().flat_map(longer).collect();
        }
        list
    }
}

/// Arrays, a space, loops, and the passes over them.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub shapes: Vec<Vec<usize>>,
    pub space: SpaceSpec,
    pub loops: Vec<LoopSpec>,
    /// Which loop each pass runs.
    pub passes: Vec<usize>,
}

impl Case {
    /// Whether a loop says that what its iterations give does not commute: one in four does.
    pub fn combines_in_order(&self, number: usize) -> bool {
        mix(mix(5, self.seed), number as u64) >> 33 & 3 == 0
    }
}

/// The initial value of element `place` of array `array`.
pub fn initial(array: usize, place: usize) -> u64 {
    (array as u64 + 1)
        .wrapping_mul(0x1000_0001)
        .wrapping_add(place as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Mixes `x` into `hash`; not commutative.
pub fn mix(hash: u64, x: u64) -> u64 {
    (hash.rotate_left(23) ^ x).wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(0x9e37_79b9)
}

/// A subscript that the description calls unknown: it depends on the iteration's data.
pub fn unknown(id: u64, access: usize, dim: usize, extent: usize) -> usize {
    (mix(mix(id, access as u64), dim as u64) >> 33) as usize % extent.max(1)
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "case {}: arrays a, b, c of shapes {:?}; {:?}", self.seed, self.shapes, self.space)?;
        for (number, spec) in self.loops.iter().enumerate() {
            let var = |name: &str| LoopVar { name: name.into(), bounds: None };
            let dims = ["i", "j", "k"][..self.space.dims()].iter().map(|name| var(name)).collect();
            let mut nest = LoopNest::new("", spec.order, Space::Dense, dims);
            spec.describe(&mut nest);
            writeln!(f, "  loop {number}: {:?}, inner {:?}", spec.order, spec.inner)?;
            for access in &spec.accesses {
                let subscript = |subscript: &Subscript| match subscript {
                    Subscript::Index(form) => nest.show(form),
                    Subscript::Range(start, end) => format!("{}..{}", nest.show(start), nest.show(end)),
                    Subscript::Full => "..".into(),
                    Subscript::Unknown => "?".into(),
                };
                let subscripts: Vec<String> = access.subscripts.iter().map(subscript).collect();
                let array = ["a", "b", "c"][access.array];
                writeln!(f, "    {} {array}[{}]", access.mode, subscripts.join(", "))?;
            }
        }
        write!(f, "  passes {:?}", self.passes)
    }
}
