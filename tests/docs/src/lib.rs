//! What draws the charts of the documents, and what their tests share.
#[path = "../../../examples/training/chart.rs"]
pub mod chart;
pub mod charts;

use std::path::PathBuf;

/// The project's directory.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
