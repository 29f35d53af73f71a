//! Schedules, and what tiles touch, against isl (`tests/fixtures/schedules.py`): nothing that isl refuses is accepted, no element
//! that isl finds is missed, and what is refused or held to be touched beyond that is counted.
use super::{Steps, Tile, Wavefront, verify};
use crate::analysis::{Dependences, analyze};
use crate::in_place::touched;
use crate::isl;
use crate::loop_nest::{Access, LoopNest, Mode, NamedArray, Order, Space};
use crate::mutant::{Mutant, with};
use serde_json::Value;

const FIXTURES: &str = include_str!("../../tests/fixtures/schedules.jsonl");

/// The extent of every array in each of its dimensions.
const EXTENT: usize = 12;

fn nest_of(line: &Value) -> LoopNest {
    let order = if line["order"] == "ordered" { Order::Ordered } else { Order::Unordered };
    let mut nest = LoopNest::new("fixture", order, Space::Dense, isl::variables(&line["dims"], "i"));
    for one in line["accesses"].as_array().unwrap() {
        let array = one[0].as_u64().unwrap() as usize;
        let mode = match one[1].as_str().unwrap() {
            "read" => Mode::Read,
            "write" => Mode::Write,
            _ => Mode::Update,
        };
        let subscripts = isl::subscripts(&one[2]);
        while nest.arrays.len() <= array {
            let name = format!("a{}", nest.arrays.len());
            nest.arrays.push(NamedArray { name, shape: Vec::new(), element_bytes: 8 });
        }
        nest.arrays[array].shape = vec![EXTENT; subscripts.len()];
        nest.accesses.push(Access { array, subscripts, mode, text: format!("a{array}"), line: 0 });
    }
    nest
}

fn of<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// How many orders are as isl says, and how many are refused though isl finds nothing wrong with them.
#[derive(Debug, Default)]
struct Verdicts {
    accepted: usize,
    refused: usize,
    needlessly: usize,
    /// Accepted, and wrong.
    wrong: Vec<String>,
}

impl Verdicts {
    fn note(&mut self, accepted: bool, legal: bool, what: impl FnOnce() -> String) {
        match (accepted, legal) {
            (true, true) => self.accepted += 1,
            (false, false) => self.refused += 1,
            (false, true) => self.needlessly += 1,
            (true, false) => self.wrong.push(what()),
        }
    }
}

/// The wavefronts of a line.
fn judge_wavefronts(nest: &LoopNest, found: &Dependences, line: &Value, verdicts: &mut Verdicts) {
    for one in line["wavefronts"].as_array().unwrap() {
        let (outer, inner, ahead, cuts, legal): (usize, usize, usize, Vec<Vec<i64>>, bool) = of(one);
        let rows = cuts[outer].len() - 1;
        let by_index = cuts[outer].last().unwrap() - cuts[outer][0] == rows as i64;
        let wavefront = Wavefront { outer, inner, by_index, ahead, blocks: cuts[inner].len() - 1 };
        let accepted = wavefront.check(nest, found, &cuts).is_ok();
        verdicts.note(accepted, legal, || format!("{wavefront:?}, {cuts:?}: {line}"));
    }
}

/// The steps of a line.
fn judge_steps(nest: &LoopNest, found: &Dependences, line: &Value, verdicts: &mut Verdicts) {
    type Cells = Vec<(usize, usize)>;
    type Tiles = Vec<Vec<Option<Cells>>>;
    for one in line["steps"].as_array().unwrap() {
        let (cuts, tiles, legal): (Vec<Vec<i64>>, Tiles, bool) = of(one);
        let grid: Vec<usize> = cuts.iter().map(|cuts| cuts.len() - 1).collect();
        let tile = |cells: Cells| Tile { cells: cells.into_iter().map(|(start, end)| start..end).collect() };
        let steps: Steps =
            tiles.into_iter().map(|step| step.into_iter().map(|cells| cells.map(tile)).collect()).collect();
        let accepted = verify(nest, found, &grid, &steps, steps[0].len()).is_ok();
        verdicts.note(accepted, legal, || format!("{steps:?}: {line}"));
    }
}

/// All verdicts of one kind, on nests in this order.
fn verdicts(order: Order, judge: impl Fn(&LoopNest, &Dependences, &Value, &mut Verdicts)) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for line in isl::lines(FIXTURES) {
        let nest = nest_of(&line);
        if nest.order == order {
            judge(&nest, &analyze(&nest), &line, &mut verdicts);
        }
    }
    verdicts
}

#[test]
fn wavefronts_that_are_accepted_keep_every_dependence() {
    for (order, least) in [(Order::Ordered, 300), (Order::Unordered, 10)] {
        let found = verdicts(order, judge_wavefronts);
        println!(
            "{order:?}: {} accepted, {} refused, {} needlessly",
            found.accepted, found.refused, found.needlessly
        );
        assert!(found.wrong.is_empty(), "{order:?}: {:#?}", found.wrong);
        assert!(found.accepted >= least, "{order:?}: {found:?}");
        // Dependences that reach back in some row and far enough are not looked at row by row.
        assert!(found.needlessly * 4 <= found.accepted, "{order:?}: {found:?}");
    }
}

#[test]
fn steps_that_are_accepted_keep_every_dependence() {
    for (order, share) in [(Order::Ordered, 2), (Order::Unordered, 4)] {
        let found = verdicts(order, judge_steps);
        println!(
            "{order:?}: {} accepted, {} refused, {} needlessly",
            found.accepted, found.refused, found.needlessly
        );
        assert!(found.wrong.is_empty(), "{order:?}: {:#?}", found.wrong);
        assert!(found.accepted >= 30 && found.refused >= 30, "{order:?}: {found:?}");
        // An ordered loop is cut where nothing is carried at all: what steps would keep besides is left out.
        assert!(found.needlessly * share <= found.accepted, "{order:?}: {found:?}");
    }
}

/// How many elements tiles are held to touch, and how many they do.
fn elements_of_tiles() -> Result<(usize, usize), String> {
    let (mut held, mut exact) = (0, 0);
    for line in isl::lines(FIXTURES) {
        let nest = nest_of(&line);
        for tile in line["tiles"].as_array().unwrap() {
            let values: Vec<(i64, i64)> = of(&tile[0]);
            for (number, access) in nest.accesses.iter().enumerate() {
                let alone = LoopNest { accesses: vec![access.clone()], ..nest.clone() };
                let boxes = touched(&alone, access.array, &values);
                let boxes = if access.mode.reads() { boxes.reads } else { boxes.writes };
                let (count, points): (usize, Vec<Vec<usize>>) = of(&tile[1][number]);
                let Some(spans) = boxes.first() else {
                    if count > 0 {
                        return Err(format!("access {number} touches nothing: {line}"));
                    }
                    continue;
                };
                for point in &points {
                    let inside = spans.iter().zip(point).all(|(span, at)| {
                        (span.start..span.end).contains(at) && (at - span.start).is_multiple_of(span.step)
                    });
                    if !inside {
                        return Err(format!("{point:?} of access {number} is not in {spans:?}: {line}"));
                    }
                }
                held += spans.iter().map(|s| (s.end - s.start).div_ceil(s.step)).product::<usize>();
                exact += count;
            }
        }
    }
    Ok((held, exact))
}

#[test]
fn tiles_touch_no_more_than_they_are_held_to() {
    let (held, exact) = elements_of_tiles().unwrap_or_else(|what| panic!("{what}"));
    println!("{held} elements for {exact}");
    // Boxes with strides: a diagonal is a box.
    assert!(held <= 2 * exact, "{held} elements for {exact}");
}

#[test]
fn isl_notices_faults_of_schedules() {
    let accepts = |mutant, order, judge: fn(&LoopNest, &Dependences, &Value, &mut Verdicts)| {
        !with(Some(mutant), || verdicts(order, judge)).wrong.is_empty()
    };
    assert!(accepts(Mutant::SkewSign, Order::Ordered, judge_wavefronts), "a skew of the wrong sign survives");
    assert!(accepts(Mutant::ConflictsAllowed, Order::Unordered, judge_steps));
    assert!(accepts(Mutant::ApartAnywhere, Order::Unordered, judge_steps));
    assert!(accepts(Mutant::OrderIgnored, Order::Ordered, judge_steps));
}
