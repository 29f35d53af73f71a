//! The tasks of a plan whose written arrays lie in place: what the core checks, and runs by.
use hectare_dependence::in_place::{Checked, InPlace, InPlaceError, Span, TileTask};
use hectare_dependence::loop_nest::LoopNest;
use hectare_dependence::schedule::Choice;
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

/// The graph, of a plan by which no two tiles that may run at once touch the same element; refuses others.
pub(super) fn check(nest: &LoopNest, in_place: &InPlace) -> Result<Checked, InPlaceError> {
    let what = |error| match error {
        TaskError::Race { tasks: [a, b], array } => format!(
            "tile {} of worker {} and tile {} of worker {} may run at once, and would touch the same elements of {}",
            a.1, a.0, b.1, b.0, nest.arrays[in_place.arrays[array]].name
        ),
        other => other.to_string(),
    };
    let graph = graph(nest, in_place).map_err(|error| InPlaceError { what: what(error) })?;
    Ok(Arc::new(graph))
}

/// The graph of a choice whose arrays lie in place, which [`check`] has made.
pub(super) fn tasks_of(choice: &Choice) -> Option<Arc<TaskGraph>> {
    choice.checked.clone()?.downcast().ok()
}
