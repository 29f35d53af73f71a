//! Whether the schedule orders iterations that touch the same element.
use super::super::plan::LoopPlan;
use super::{Findings, all_points, elements, iteration};
use crate::view::Touch;
use hectare_dependence::loop_nest::Order;
use hectare_dependence::placement::ArrayPlacement;
use hectare_dependence::schedule::{Tile, cell_number, for_each_cell};
use hectare_dsm::Rank;
use std::collections::HashMap;

/// The tile of a worker in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    step: usize,
    worker: usize,
    /// Its number among those of its worker.
    number: usize,
}

#[derive(Debug)]
struct Seen {
    place: Place,
    writes: bool,
    index: Vec<i64>,
}

/// Who touches which elements of arrays that the loop writes.
pub(crate) struct Races<'a> {
    plan: &'a LoopPlan,
    places: Vec<Place>,
    seen: HashMap<(usize, Vec<usize>), Vec<Seen>>,
}

impl<'a> Races<'a> {
    pub(crate) fn new(plan: &'a LoopPlan) -> Races<'a> {
        let mut places = vec![Place::default(); plan.cells];
        let mut numbers = vec![0; plan.tiles.len()];
        for (step, tiles) in plan.choice.steps.iter().enumerate() {
            for (worker, tile) in tiles.iter().enumerate().filter_map(|(w, tile)| Some((w, tile.as_ref()?))) {
                let place = Place { step, worker, number: numbers[worker] };
                numbers[worker] += 1;
                for_each_cell(tile, |cell| {
                    places[cell_number(&plan.choice.grid, cell)] = place;
                    true
                });
            }
        }
        Races { plan, places, seen: HashMap::new() }
    }

    /// The step and worker that would run an iteration.
    fn place(&self, index: &[i64]) -> Place {
        let choice = &self.plan.choice;
        let cell = |(cuts, at): (&Vec<i64>, &i64)| {
            cuts.partition_point(|cut| cut <= at).saturating_sub(1).min(cuts.len().saturating_sub(2))
        };
        let cell: Vec<usize> = choice.cuts.iter().zip(index).map(cell).collect();
        self.places[cell_number(&choice.grid, &cell)]
    }

    /// PassTrace iterations that touch what `index` touches and that nothing orders.
    pub(crate) fn check(&mut self, index: &[i64], touches: &[Touch], findings: &mut Findings) {
        let place = self.place(index);
        let plan = self.plan;
        let kept =
            |touch: &&Touch| plan.nest.is_written(touch.array) && !plan.nest.relaxed.contains(&touch.array);
        for touch in touches.iter().filter(kept) {
            all_points(&touch.elements, |element| {
                let seen = self.seen.entry((touch.array, element.to_vec())).or_default();
                for other in seen.iter().filter(|other| other.writes || touch.writes) {
                    if is_ordered(plan, touch.array, element, other.place, place) {
                        continue;
                    }
                    findings.add("races", touch.array, || {
                        let point: Vec<_> = element.iter().map(|at| *at..at + 1).collect();
                        format!(
                            "iterations {} and {} touch {}, and nothing in the schedule keeps workers {} and {} from \
                             doing that {}",
                            iteration(&plan.nest, &other.index),
                            iteration(&plan.nest, index),
                            elements(&plan.nest, touch.array, &point),
                            other.place.worker,
                            place.worker,
                            match plan.nest.order {
                                Order::Unordered => "at once",
                                Order::Ordered => "at once or in the wrong order",
                            }
                        )
                    });
                }
                if !seen.iter().any(|other| other.place == place && other.writes >= touch.writes) {
                    seen.push(Seen { place, writes: touch.writes, index: index.to_vec() });
                }
                true
            });
        }
    }
}

fn is_ordered(plan: &LoopPlan, array: usize, element: &[usize], a: Place, b: Place) -> bool {
    if plan.free.is_some() {
        // Any two tiles may run at once, unless they share a part.
        return a == b || holds(plan, array, element, a) && holds(plan, array, element, b);
    }
    if a.worker == b.worker {
        return true;
    }
    if let Some(tasks) = &plan.tasks {
        let task = |place: Place| (place.worker as Rank, place.number);
        let (a, b) = (task(a), task(b));
        // `a` came first in the serial order, which ordered loops keep.
        return tasks.is_before(a, b) || plan.nest.order == Order::Unordered && tasks.is_before(b, a);
    }
    // A part goes from the one worker to the other between the steps, if both tiles hold it.
    a.step != b.step
        && plan.nest.order == Order::Unordered
        && holds(plan, array, element, a)
        && holds(plan, array, element, b)
}

fn holds(plan: &LoopPlan, array: usize, element: &[usize], Place { step, worker, .. }: Place) -> bool {
    let same = |tile: &Tile| plan.choice.steps[step][worker].as_ref() == Some(tile);
    let Some(tile) = plan.tiles[worker].iter().find(|plan| same(&plan.tile)) else { return false };
    match &plan.choice.placement.arrays[array] {
        ArrayPlacement::Replicated | ArrayPlacement::Relaxed => false,
        ArrayPlacement::Whole => true,
        // The tasks say what comes before what; with ghost regions, all tiles are of one step.
        ArrayPlacement::InPlace | ArrayPlacement::Ghosted { .. } => false,
        ArrayPlacement::Parts { dim, bounds, .. } => {
            let parts = &tile.parts[array];
            (bounds[parts.start]..bounds[parts.end]).contains(&element[*dim])
        }
    }
}
