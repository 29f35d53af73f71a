//! The crates whose sources tests look at.
use std::path::{Path, PathBuf};

const CRATES: [&str; 18] = [
    "agent",
    "apps/hogwild",
    "apps/matrix_completion",
    "daemon",
    "dsm",
    "ffi",
    "net",
    "net/dpdk",
    "net/rdma",
    "net/session",
    "net/sim",
    "net/transport",
    "orion-layer",
    "orion-layer/data",
    "orion-layer/dependence",
    "orion-layer/macros",
    "tests/faults",
    "wire",
];

/// The folders with their sources.
pub(crate) fn sources_of_crates() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    CRATES.iter().map(move |name| root.join(name).join("src"))
}
