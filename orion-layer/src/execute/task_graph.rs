//! The tasks of a plan whose written arrays lie in place: what the core checks, and runs by.
use crate::error::{Error, Result};
use hectare_dependence::in_place::{InPlace, Span, TileTask};
use hectare_dependence::loop_nest::LoopNest;
use hectare_dsm::tasks::{Access, Region, Task, TaskError, TaskGraph};
use std::sync::Arc;

/// The tasks of a plan, which were checked.
fn graph(nest: &LoopNest, in_place: &InPlace) -> Result<TaskGraph, TaskError> {
    let region = |spans: &Vec<Span>| Region {
        spans: spans
            .iter()
            .map(|&Span { start, end, step }| hectare_dsm::tasks::Span { start, end, step })
            .collect(),
    };
    let task = |task: &TileTask| {
        let accesses = task.touched.iter().enumerate().map(|(array, touched)| Access {
            array,
            reads: touched.reads.iter().map(region).collect(),
            writes: touched.writes.iter().map(region).collect(),
        });
        Task { accesses: accesses.collect(), after: task.after.clone() }
    };
    let shapes = in_place.arrays.iter().map(|array| nest.arrays[*array].shape.clone()).collect();
    TaskGraph::new(shapes, in_place.tasks.iter().map(|tasks| tasks.iter().map(task).collect()).collect())
}

/// Refuses a plan by which two tiles that may run at once touch the same element.
pub(super) fn check(nest: &LoopNest, in_place: &InPlace) -> Result<(), String> {
    graph(nest, in_place).map(drop).map_err(|error| match error {
        TaskError::Race { tasks: [a, b], array } => format!(
            "tile {} of worker {} and tile {} of worker {} may run at once, and would touch the same elements of {}",
            a.1, a.0, b.1, b.0, nest.arrays[in_place.arrays[array]].name
        ),
        other => other.to_string(),
    })
}

/// The graph of a plan whose arrays lie in place.
pub(super) fn tasks_of(nest: &LoopNest, in_place: Option<&InPlace>) -> Result<Option<Arc<TaskGraph>>> {
    let invalid = |error: TaskError| Error::InvalidSchedule {
        loop_name: nest.name.clone(),
        schedule: "arrays in place".into(),
        what: error.to_string(),
    };
    in_place.map(|in_place| graph(nest, in_place).map(Arc::new).map_err(invalid)).transpose()
}
