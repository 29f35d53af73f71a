//! Collections with keys of any kind, spread over the workers, whose key spaces grow: [`DistMap`] and
//! [`DistMultiMap`]; and [`DistVec`], which grows at its end. After STRADS-AP's `dmap` and `dvector` (Kim et al., USENIX ATC
//! 2019).
//!
//! ```
//! use hectare_orion::collections::Sum;
//! use hectare_orion::{parallel_for, run};
//!
//! let lines = ["to be or not", "to be", "that is not it"];
//! for workers in 1..4 {
//!     run(workers, |w| {
//!         let text = w.entries([3], 3, |k| ([k], lines[k].to_owned()))?;
//!         let mut counts = w.dist_map::<String, u64, _>(Sum)?;
//!         parallel_for!(w, unordered, buffer counts;
//!             for ((_line), line) in text {
//!                 for word in line.split(' ') {
//!                     counts.add(word, 1);
//!                 }
//!             })?;
//!         assert_eq!((counts.len(), counts.get(w, "not")?, counts.get(w, "no")?), (7, Some(2), None));
//!         // In the order of the keys, on any number of workers.
//!         assert_eq!(counts.to_vec(w)?[0], ("be".to_owned(), 2));
//!         Ok(())
//!     })?;
//! }
//! # Ok::<(), hectare_orion::Error>(())
//! ```
//!
//! # Where entries are
//! An entry lives with the worker that the hash of its key determines, in a sorted map, and encoded in an area with a
//! hash table, in which all workers look up keys in place. So a map takes its memory twice, for all workers together;
//! a lookup decodes only the value that it finds.
//!
//! # In loops
//! `buffer counts` lets a body look up (`counts.get(&key)`) and contribute (`counts.add(&key, part)`); `read counts`
//! lets it look up. Lookups see the map as it was when the pass began. Contributions are merged by the map's rule
//! ([`Merge`]) at the end of the pass, each exactly once, like those to an accumulator, whatever the loop's
//! consistency: first those of one cell of the loop, as they come, then the cells in their order. Cells are the same
//! for up to twelve workers ([`Context::run_loop`](crate::Context::run_loop)), and so are the merged values, bit by
//! bit, and the order of the values of a multimap. An `ordered` loop runs so that this is the order of its iterations.
//! (Within a cell, an unordered loop visits entries in the order in which they lie. If a loop that neither collects nor accumulates has moved the entries of the same array before,
//! that order may depend on the number of workers; `ordered` loops go by index.) A pass that fails leaves the map as
//! it was; one that fails when contributions are merged (a rule that panics:
//! [`Error::RulePanicked`](crate::Error::RulePanicked), with the key) leaves it refusing every use.
mod from_lazy;
mod image;
mod list;
mod loop_array;
mod map;
mod missing;
mod pending;
mod restored;
mod rule;
mod settle;
mod vector;
mod vector_settle;
mod vector_view;
mod view;

pub use self::map::{DistMap, DistMultiMap};
pub use self::rule::{Append, First, Last, Max, Merge, Min, Sum, Summable};
pub use self::vector::DistVec;
pub(crate) use self::vector_view::{VecArg, VecRead};
pub use self::vector_view::{VecReadView, VecView};
pub(crate) use self::view::{MapArg, MapRead};
pub use self::view::{MapReadView, MapView};

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Keys of maps.
pub trait Key: Serialize + DeserializeOwned + Ord + Hash + Clone + Debug + 'static {}
impl<K: Serialize + DeserializeOwned + Ord + Hash + Clone + Debug + 'static> Key for K {}

/// The same in every process of one program, whose workers run one executable.
fn hash<Q: Hash + ?Sized>(key: &Q) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The worker that has the key with this hash. Tables use the low bits.
fn owner(hash: u64, workers: usize) -> usize {
    ((u128::from(hash) * workers as u128) >> 64) as usize
}
