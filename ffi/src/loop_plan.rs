//! How workers run a loop: the schedule that its dependences allow, and the tasks that the core has checked.
use hectare_dependence::analysis::{Dependences, analyze};
use hectare_dependence::in_place::{
    CheckTasks, Checked, InPlace, InPlaceError, Span, TileTask, Touched, Waits, touched,
};
use hectare_dependence::loop_nest::{LoopNest, Order};
use hectare_dependence::schedule::{
    Choice, Schedule, ScheduleError, Serial, Team, Tile, Uncut, Verdict, choose,
};
use hectare_dsm::tasks::{Access, Region, Task, TaskError, TaskGraph};
use std::fmt::Write;
use std::sync::Arc;

/// A block: the first value of each variable, and the one behind the last.
pub(crate) type Block = Vec<(i64, i64)>;

/// How a loop runs.
#[derive(Debug)]
pub(crate) struct LoopPlan {
    pub(crate) graph: Arc<TaskGraph>,
    /// By worker, in the order of its tasks.
    pub(crate) blocks: Vec<Vec<Block>>,
    /// In words.
    pub(crate) text: String,
}

impl LoopPlan {
    /// Plans a loop: the same on all workers, since it depends on nothing but the description. Or says why it cannot be.
    pub(crate) fn of(nest: &LoopNest, workers: usize) -> Result<LoopPlan, Refusal> {
        if nest.arrays.is_empty() {
            return Err(Refusal("it touches no area: name one with ha_loop_area".into()));
        }
        let dependences = analyze(nest);
        let (mut refused, mut found) = (None, try_plan(nest, &dependences, None, workers));
        if let Err(why) = found {
            // Tiles that do not conflict may be held to touch the same elements, where what they touch is no box.
            refused = Some(why.0);
            found = try_plan(nest, &dependences, Some(&Serial), workers);
        }
        let (choice, blocks, graph) = found?;
        let mut text = explain(nest, &dependences, &choice, workers);
        if let Some(why) = refused {
            text.push_str(&format!("  what else was chosen first is refused: {why}\n"));
        }
        Ok(LoopPlan { graph, blocks, text })
    }
}

/// A schedule, its blocks by worker, and its tasks.
type Planned = (Choice, Vec<Vec<Block>>, Arc<TaskGraph>);

/// Why there is no plan, in words.
pub(crate) struct Refusal(pub(crate) String);

impl From<ScheduleError> for Refusal {
    fn from(error: ScheduleError) -> Refusal {
        Refusal(error.to_string())
    }
}

impl From<TaskError> for Refusal {
    fn from(error: TaskError) -> Refusal {
        Refusal(error.to_string())
    }
}

fn try_plan(
    nest: &LoopNest,
    dependences: &Dependences,
    own: Option<&dyn Schedule>,
    workers: usize,
) -> Result<Planned, Refusal> {
    let cut = |dim: usize, cells: usize| {
        let (first, last) = nest.dims[dim].bounds.unwrap_or((0, 0));
        let at = |cell: usize| first + ((last - first) as u128 * cell as u128 / cells as u128) as i64;
        (0..=cells).map(at).collect()
    };
    let check = |nest: &LoopNest, in_place: &InPlace| {
        let refused = |error: TaskError| InPlaceError { what: error.to_string() };
        graph(nest, in_place).map(|graph| graph as Checked).map_err(refused)
    };
    let team = Team { uncut: Some(Uncut::InPlace(CheckTasks(&check))), ..Team::of_one_host(workers, false) };
    let choice = choose(nest, dependences, own, &cut, team)?;
    // Schedules whose arrays could be cut into parts keep their steps; here, no array is cut.
    let graph = match choice.checked.clone().and_then(|checked| checked.downcast().ok()) {
        Some(graph) => graph,
        None => graph(nest, &InPlace::of(nest, &choice.cuts, &choice.steps, workers, Waits::Steps))?,
    };
    let block = |tile: &Tile| {
        let values = choice.cuts.iter().zip(&tile.cells);
        values.map(|(cuts, cells)| (cuts[cells.start], cuts[cells.end])).collect::<Block>()
    };
    let of_worker =
        |worker: usize| choice.steps.iter().filter_map(|step| step[worker].as_ref()).map(block).collect();
    let blocks = (0..workers).map(of_worker).collect();
    Ok((choice, blocks, graph))
}

/// The tasks of all workers, checked. Areas that are only read are among them, since their owners may not write them meanwhile.
fn graph(nest: &LoopNest, in_place: &InPlace) -> Result<Arc<TaskGraph>, TaskError> {
    let bounds: Vec<(i64, i64)> = nest.dims.iter().filter_map(|variable| variable.bounds).collect();
    let is_written = |array: &usize| in_place.arrays.contains(array);
    // The elements that all iterations together read of them: they conflict with nothing.
    let read: Vec<(usize, Touched)> = (0..nest.arrays.len())
        .filter(|array| !is_written(array))
        .map(|array| (array, touched(nest, array, &bounds)))
        .collect();
    let task = |TileTask { touched, after }: &TileTask| {
        let written = in_place.arrays.iter().copied().zip(touched);
        let all = written.chain(read.iter().map(|(array, touched)| (*array, touched)));
        let accesses = all.map(|(array, touched)| Access {
            array,
            reads: regions(&touched.reads),
            writes: regions(&touched.writes),
        });
        Task { accesses: accesses.collect(), after: after.clone() }
    };
    let tasks = in_place.tasks.iter().map(|tasks| tasks.iter().map(task).collect()).collect();
    TaskGraph::new(nest.arrays.iter().map(|array| array.shape.clone()).collect(), tasks).map(Arc::new)
}

fn regions(boxes: &[Vec<Span>]) -> Vec<Region> {
    let span = |&Span { start, end, step }: &Span| hectare_dsm::tasks::Span { start, end, step };
    boxes.iter().map(|spans| Region { spans: spans.iter().map(span).collect() }).collect()
}

/// The text of the explanation: candidates, and the schedule that was chosen.
fn explain(nest: &LoopNest, dependences: &Dependences, choice: &Choice, workers: usize) -> String {
    let order = if nest.order == Order::Ordered { "ordered" } else { "unordered" };
    let variables = nest.dims.iter().map(|variable| {
        let (first, last) = variable.bounds.unwrap_or((0, 0));
        format!("{} in {first}..{last}", variable.name)
    });
    let variables = variables.collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    // Text takes whatever is written.
    let _ = writeln!(text, "loop {:?}, {order}, {variables}, on {workers} workers", nest.name);
    for access in &nest.accesses {
        let _ = writeln!(text, "  {} {}", access.mode, access.text);
    }
    let mut vectors: Vec<String> = dependences.list.iter().map(|one| one.to_string()).collect();
    vectors.sort();
    vectors.dedup();
    let vectors = if vectors.is_empty() { "none".into() } else { vectors.join(", ") };
    let _ = writeln!(text, "  dependences: {vectors}");
    for one in &choice.candidates {
        let _ = match &one.verdict {
            Verdict::Chosen(cost) => {
                writeln!(text, "  * {}: about {:.3} ms", one.name, cost.nanoseconds / 1e6)
            }
            Verdict::Costlier(cost) | Verdict::DifferentBits(cost) => {
                writeln!(text, "  - {}: about {:.3} ms", one.name, cost.nanoseconds / 1e6)
            }
            Verdict::Refused(why) => writeln!(text, "  - {}: {why}", one.name),
        };
    }
    text
}
