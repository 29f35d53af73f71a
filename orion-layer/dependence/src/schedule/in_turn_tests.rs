//! What one worker of several hosts does, beside what workers of one host do.
use crate::analysis::analyze;
use crate::hosts::{Hosts, Link};
use crate::in_place::{CheckTasks, InPlace, InPlaceError};
use crate::isl;
use crate::loop_nest::{Access, LoopNest, Mode, NamedArray, Order, Space};
use crate::placement::ArrayPlacement;
use crate::schedule::{Choice, Schedule, ScheduleError, Team, Uncut, Verdict, Wavefront, choose};
use serde_json::{Value, json};

fn nest(order: Order, dims: Value, shape: &[usize], accesses: &[(Mode, Value)]) -> LoopNest {
    let mut nest = LoopNest::new("loop", order, Space::Dense, isl::variables(&dims, "i"));
    nest.arrays.push(NamedArray { name: "a".into(), shape: shape.into(), element_bytes: 8 });
    for (mode, subscripts) in accesses {
        let subscripts = isl::subscripts(subscripts);
        nest.accesses.push(Access { array: 0, subscripts, mode: *mode, text: "a".into(), line: 0 });
    }
    nest
}

/// What one host does, and what two do, with four workers.
fn choices(nest: &LoopNest, accumulates: bool) -> [Choice; 2] {
    choices_by(nest, accumulates, None).map(Result::unwrap)
}

fn choices_by(
    nest: &LoopNest,
    accumulates: bool,
    own: Option<&dyn Schedule>,
) -> [Result<Choice, ScheduleError>; 2] {
    let check = |_: &LoopNest, _: &InPlace| Ok::<_, InPlaceError>(std::sync::Arc::new(()) as _);
    let cut = |dim: usize, cells: usize| {
        let (first, last) = nest.dims[dim].bounds.unwrap();
        (0..=cells).map(|cell| first + (last - first) * cell as i64 / cells as i64).collect()
    };
    let check = CheckTasks(&check);
    let hosts = Hosts::even(2, 4, Link::of_network(1e4, 1.0));
    let team = Team::of_one_host(4, accumulates);
    let one = Team { uncut: Some(Uncut::InPlace(check)), ..team };
    let two = Team { hosts: Some(&hosts), uncut: Some(Uncut::Ghosts), on_one_host: Some(check), ..team };
    [one, two].map(|team| choose(nest, &analyze(nest), own, &cut, team))
}

fn has_the_same_cells([one, two]: &[Choice; 2]) {
    assert!(one.placement.in_place.is_some(), "{:?}", one.candidates);
    assert!(two.is_in_turn() && !two.is_serial() && two.placement.in_place.is_none(), "{:?}", two.candidates);
    assert_eq!((&one.grid, &one.cuts), (&two.grid, &two.cuts));
    assert_eq!(two.placement.arrays, [ArrayPlacement::Whole]);
    let of_others = |step: &Vec<Option<_>>| step[0].is_some() && step[1..].iter().all(Option::is_none);
    assert!(two.steps.iter().all(of_others));
}

fn is_in_turn(choices: &[Choice; 2]) {
    has_the_same_cells(choices);
    let [one, two] = choices;
    let said = two.candidates.iter().find(|other| other.name == one.chosen()).unwrap();
    assert!(matches!(&said.verdict, Verdict::Refused(why) if why.contains("on one host")), "{said:?}");
}

/// Rows of a wavefront that look ahead in the row before: the tiles of a step would break that, rows do not.
#[test]
fn a_wavefront_goes_row_by_row() {
    let sweep = [
        (Mode::Update, json!([[0, 0, 1]])),
        (Mode::Read, json!([[-1, 0, 1]])),
        (Mode::Read, json!([[1, 0, 1]])),
    ];
    let nest = nest(Order::Ordered, json!([[0, 60], [1, 999]]), &[1000], &sweep);
    let choices = choices(&nest, true);
    is_in_turn(&choices);
    let [_, two] = choices;
    let rows: Vec<_> = two.steps.iter().map(|step| step[0].as_ref().unwrap().cells.clone()).collect();
    assert_eq!(rows, (0..60).map(|row| vec![row..row + 1, 0..two.grid[1]]).collect::<Vec<_>>());
}

/// A schedule of one's own, and one that the dependences do not allow.
#[test]
fn a_wavefront_of_ones_own_goes_row_by_row() {
    let sweep = [(Mode::Update, json!([[0, 0, 1]])), (Mode::Read, json!([[1, 0, 1]]))];
    let nest = nest(Order::Ordered, json!([[0, 60], [1, 999]]), &[1000], &sweep);
    let own = |ahead| Wavefront { outer: 0, inner: 1, by_index: true, ahead, blocks: 7 };
    let choices = choices_by(&nest, false, Some(&own(1))).map(Result::unwrap);
    has_the_same_cells(&choices);
    assert_eq!(choices[1].grid, [60, 7]);
    let refused = choices_by(&nest, false, Some(&own(0))).map(Result::unwrap_err);
    assert!(matches!(refused, [ScheduleError::Order { .. }, ScheduleError::Order { .. }]), "{refused:?}");
}

/// Without sums, its order makes the same bits in whatever cells.
#[test]
fn what_has_the_same_bits_anyway_is_serial() {
    let sweep = [(Mode::Update, json!([[0, 0, 1]])), (Mode::Read, json!([[-1, 0, 1]]))];
    let nest = nest(Order::Ordered, json!([[0, 60], [1, 999]]), &[1000], &sweep);
    let [one, two] = choices(&nest, false);
    assert!(one.placement.in_place.is_some());
    assert!(!two.is_in_turn() && two.is_serial() && two.grid == [1, 1]);
}

/// Every second element from the ones beside it, of an array of one dimension, which has no ghost regions.
#[test]
fn blocks_go_one_after_the_other() {
    let halves =
        [(Mode::Update, json!([[1, 2]])), (Mode::Read, json!([[0, 2]])), (Mode::Read, json!([[2, 2]]))];
    let nest = nest(Order::Unordered, json!([[0, 5000]]), &[10_001], &halves);
    let choices = choices(&nest, true);
    is_in_turn(&choices);
    let [one, two] = choices;
    let tiles = |choice: &Choice| choice.steps.iter().flatten().flatten().cloned().collect::<Vec<_>>();
    assert_eq!(tiles(&one), tiles(&two));
}
