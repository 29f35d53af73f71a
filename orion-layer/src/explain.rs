//! Why a loop runs as it does, in words for people who never heard of dependence vectors.
use crate::context::Context;
use crate::execute::{BetweenHosts, Inspected, LinkBytes, LoopPlan};
use crate::relax::{Relaxation, Treatment, explained};
use crate::site::by_place;
use crate::text::counted;
use hectare_dependence::analysis::{Exactness, analyze};
use hectare_dependence::loop_nest::{LoopNest, Order, Space};
use hectare_dependence::placement::ArrayPlacement;
use hectare_dependence::schedule::{Candidate, Cost, Steps, Team, Verdict, choose};
use serde::Serialize;
use std::fmt::{self, Write};
use std::mem::{Discriminant, discriminant};
use std::ops::{Deref, DerefMut};

/// The explanation of one loop: [`fmt::Display`] for people, serde for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The loop: where it stands.
    pub loop_name: String,
    /// The space of its iterations, in words.
    pub space: String,
    /// Under which consistencies it has run, and with which intervals between clocks, in the order in which they came
    /// first. Empty for a loop that relaxes, buffers and serves no array.
    pub relaxes: Vec<Relaxation>,
    /// Ordered or not.
    pub order: Order,
    /// How many workers.
    pub workers: usize,
    /// The conflicts that keep iterations from running at the same time, one sentence each.
    pub conflicts: Vec<String>,
    /// The same as dependence vectors.
    pub vectors: Vec<String>,
    /// The schedules that were considered.
    pub candidates: Vec<Candidate>,
    /// Whether the blocks of a rotation are taken as they come free, and not step by step.
    pub is_dynamic: bool,
    /// The loop's variables: dimensions of the space.
    pub dims: Vec<String>,
    /// Cells per dimension.
    pub grid: Vec<usize>,
    /// For each dimension, the values between its cells, the first and the last included: cell `c` has those from `cuts[c]` up to
    /// `cuts[c + 1]`.
    pub cuts: Vec<Vec<i64>>,
    /// The tiles of each worker in each step: `tiles[step][worker]` are boxes of cells. With `cuts` that is the whole schedule, as it can
    /// be checked from outside. Steps of a wavefront need not follow each other: a tile runs when those are done that it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiles: Steps,
    /// Steps of a pass.
    pub steps: usize,
    /// Each array: its name, and where it is.
    pub arrays: Vec<(String, ArrayPlacement)>,
    /// Arrays whose dependences are given up: their names, and what happens instead, in words.
    pub shared: Vec<(String, String)>,
    /// Bytes that hosts send each other in a pass, if the program is on several.
    pub between_hosts: Option<BetweenHosts>,
    /// If its subscripts come from data, what the iterations touch, as far as it has been found out.
    pub inspected: Option<Inspected>,
    /// Advice, if only a serial run is possible.
    pub advice: Option<String>,
}

/// The explanations of a program's loops, which are printed one below the other. Of a loop that was planned for many ranges, as
/// one inside of another loop whose variable bounds it, those that run alike are printed once, with all their ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Explanations(pub Vec<Explanation>);

impl fmt::Display for Explanations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = vec![false; self.0.len()];
        for (number, one) in self.0.iter().enumerate() {
            if std::mem::replace(&mut printed[number], true) {
                continue;
            }
            if number > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{one}")?;
            let like: Vec<usize> =
                (number + 1..self.0.len()).filter(|other| one.runs_like(&self.0[*other])).collect();
            if like.len() >= MANY {
                let (first, last) = (&self.0[like[0]].space, &self.0[like[like.len() - 1]].space);
                writeln!(f, "  {} other ranges run alike, from {first} to {last}.", like.len())?;
                like.into_iter().for_each(|other| printed[other] = true);
            }
        }
        Ok(())
    }
}

/// From this number of ranges on, those that run like another are not printed each.
const MANY: usize = 3;

impl Deref for Explanations {
    type Target = Vec<Explanation>;

    fn deref(&self) -> &Vec<Explanation> {
        &self.0
    }
}

impl DerefMut for Explanations {
    fn deref_mut(&mut self) -> &mut Vec<Explanation> {
        &mut self.0
    }
}

impl IntoIterator for Explanations {
    type Item = Explanation;
    type IntoIter = std::vec::IntoIter<Explanation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Explanations {
    type Item = &'a Explanation;
    type IntoIter = std::slice::Iter<'a, Explanation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl LoopPlan {
    /// Explains the plan.
    pub fn explain(&self) -> Explanation {
        let nest = &self.nest;
        let arrays = nest.arrays.iter().map(|array| array.name.clone());
        let shared = nest
            .relaxed
            .iter()
            .map(|array| (nest.arrays[*array].name.clone(), explained(nest, *array, &self.sharing)));
        Explanation {
            loop_name: nest.name.clone(),
            space: space(nest),
            relaxes: self.reports.borrow().iter().filter_map(|report| report.relax).collect(),
            order: nest.order,
            workers: self.workers(),
            conflicts: self.dependences.describe_all(nest),
            vectors: self.dependences.list.iter().map(|dependence| dependence.describe(nest)).collect(),
            candidates: self.choice.candidates.clone(),
            is_dynamic: self.choice.is_dynamic(),
            dims: nest.dims.iter().map(|dim| dim.name.clone()).collect(),
            grid: self.choice.grid.clone(),
            cuts: self.choice.cuts.clone(),
            tiles: self.choice.steps.clone(),
            steps: self.choice.steps.len(),
            arrays: arrays.zip(self.choice.placement.arrays.iter().cloned()).collect(),
            shared: shared.collect(),
            between_hosts: self
                .between_hosts
                .as_ref()
                .map(|planned| planned.with(&self.read_bytes.borrow(), &self.link_meter.borrow())),
            inspected: self.inspected(),
            advice: self.advice(),
        }
    }

    /// The results of inspecting the loop's iterations, if it has run.
    fn inspected(&self) -> Option<Inspected> {
        let said = self.inspection.as_ref()?.borrow().said.clone();
        (said.made > 0 || said.why_serial.is_some()).then_some(said)
    }

    /// Why the iterations are not inspected, though their subscripts do not tell what they touch.
    fn uninspected(&self) -> Option<String> {
        let is_exact = self.sharing.treatments.iter().all(|treatment| *treatment == Treatment::Exact);
        let why = match &self.nest.uninspected {
            Some(why) => return Some(why.clone()),
            None if self.inspection.is_some() || self.is_certain() => return None,
            None if self.has_own_schedule => "the program gives its schedule",
            None if !is_exact => "that is done for loops that relax, buffer and serve no array",
            None if !self.sharing.has_slice => return None,
            None if self.workers() == 1 => "there is only one worker",
            None => return None,
        };
        Some(why.into())
    }

    /// Whether it is certain that iterations depend on each other, and not only what may be, for all that subscripts say.
    fn is_certain(&self) -> bool {
        self.dependences.list.iter().any(|dependence| dependence.exactness != Exactness::Assumed)
    }

    fn advice(&self) -> Option<String> {
        if !(self.choice.is_serial() || self.choice.is_in_turn())
            || self.inspected().is_some_and(|inspected| inspected.kind.is_some())
        {
            return None;
        }
        let nest = &self.nest;
        if self.dependences.is_empty() {
            let why = "no two iterations conflict, but their arrays cannot be cut, for the reasons above; a written array is \
                       cut where all its subscripts in one dimension move with one loop variable";
            return Some(why.into());
        }
        let mut accesses: Vec<&str> = Vec::new();
        for dependence in &self.dependences.list {
            for access in [dependence.source, dependence.sink] {
                let text = nest.accesses[access].text.as_str();
                if !accesses.contains(&text) {
                    accesses.push(text);
                }
            }
        }
        let accesses = accesses.join(", ");
        let mut advice = match self.inspected() {
            Some(_) => format!("the reason is above, of what it touches through {accesses}"),
            None if self.is_certain() => format!("the iterations depend on each other through {accesses}"),
            None => {
                format!("for all that is known, the iterations may depend on each other through {accesses}")
            }
        };
        if nest.order == Order::Ordered {
            advice.push_str("; if any serial order of the iterations will do, use `unordered`");
        }
        if let Some(why) = self.uninspected() {
            advice.push_str(&format!("; what they touch is not found out before they run: {why}"));
        }
        advice.push_str(&self.gain().unwrap_or_default());
        Some(advice)
    }
}

impl LoopPlan {
    /// The gain from giving up the dependences that keep the loop serial.
    fn gain(&self) -> Option<String> {
        let mut nest = self.nest.clone();
        for dependence in &self.dependences.list {
            if !nest.relaxed.contains(&dependence.array) {
                nest.relaxed.push(dependence.array);
            }
        }
        nest.order = Order::Unordered;
        let names: Vec<&str> = nest.relaxed.iter().map(|array| nest.arrays[*array].name.as_str()).collect();
        let names = names.join(", ");
        // Cells of equal extent are near enough for an estimate.
        let even = |dim: usize, cells: usize| {
            let (start, end) = nest.dims[dim].bounds.unwrap_or((0, 0));
            (0..=cells as i64).map(|cell| start + (end - start) * cell / cells.max(1) as i64).collect()
        };
        let workers = self.workers().max(2);
        let choice = choose(&nest, &analyze(&nest), None, &even, Team::of_one_host(workers, false)).ok()?;
        let chosen =
            choice.candidates.iter().find(|candidate| matches!(candidate.verdict, Verdict::Chosen(_)))?;
        (chosen.name != "serial").then(|| {
            format!(
                "; if iterations can do without each other's latest changes to {names}, `relax {names}` or a buffer, with a \
                 `consistency`, would let {workers} workers run it {}",
                chosen.name
            )
        })
    }
}

impl Context<'_> {
    /// Explains every loop that has been planned so far, in the order of the program's source. What a loop does alike over other arrays
    /// or under several consistencies is said once, with all of these ([`Explanation::relaxes`]). Of plans that were dropped, as an array
    /// of theirs was, or as there were many, each loop's last one is explained.
    pub fn explain(&self) -> Explanations {
        let mut plans: Vec<_> = self.plans().collect();
        plans.sort_by_key(|plan| plan.number);
        let mut all: Vec<Explanation> = Vec::new();
        for plan in plans {
            let one = plan.explain();
            match all.iter_mut().find(|known| known.says_the_same(&one)) {
                Some(known) => {
                    let new = one.relaxes.into_iter().filter(|relax| !known.relaxes.contains(relax));
                    let new: Vec<Relaxation> = new.collect();
                    known.relaxes.extend(new);
                }
                None => all.push(one),
            }
        }
        // Those of one place in the order in which they were planned.
        all.sort_by(|a, b| by_place(&a.loop_name, &b.loop_name));
        Explanations(all)
    }

    /// The descriptions of all loops that have been planned so far, by their places; for tests of the macro.
    #[doc(hidden)]
    pub fn __nests(&self) -> Vec<LoopNest> {
        let mut all: Vec<LoopNest> = self.plans().map(|plan| plan.nest.clone()).collect();
        all.sort_by(|a, b| by_place(&a.name, &b.name));
        all
    }
}

impl Explanation {
    /// The name of the schedule.
    pub(crate) fn chosen(&self) -> &str {
        let chosen = self.candidates.iter().find(|one| matches!(one.verdict, Verdict::Chosen(_)));
        chosen.map_or("", |one| &one.name)
    }

    /// The cost of a pass by the chosen schedule.
    fn cost_of_chosen(&self) -> Option<f64> {
        self.candidates.iter().find_map(|one| match &one.verdict {
            Verdict::Chosen(cost) => Some(cost.here()),
            _ => None,
        })
    }

    /// Whether it was inspected, and runs by what was found, not by the schedule.
    fn runs_as_found(&self) -> bool {
        self.inspected.as_ref().is_some_and(|inspected| inspected.kind.is_some())
    }

    /// Whether two plans of a loop differ in nothing but their ranges and what follows from their lengths.
    fn runs_like(&self, other: &Explanation) -> bool {
        fn arrays(of: &Explanation) -> impl Iterator<Item = (&str, Discriminant<ArrayPlacement>)> {
            of.arrays.iter().map(|(name, placement)| (name.as_str(), discriminant(placement)))
        }
        self.loop_name == other.loop_name
            && self.space != other.space
            && self.relaxes == other.relaxes
            && self.conflicts.is_empty() == other.conflicts.is_empty()
            && self.chosen() == other.chosen()
            && arrays(self).eq(arrays(other))
    }

    /// Whether nothing differs between two plans of a loop but what it promised.
    fn says_the_same(&self, other: &Explanation) -> bool {
        let alike = || Explanation { relaxes: self.relaxes.clone(), ..other.clone() };
        self.relaxes.is_empty() == other.relaxes.is_empty() && *self == alike()
    }
}

fn space(nest: &LoopNest) -> String {
    let names: Vec<&str> = nest.dims.iter().map(|dim| dim.name.as_str()).collect();
    match &nest.space {
        Space::Entries { array, count } => {
            let entries = counted(*count as u64, "entry");
            format!("({}) over the {entries} of {array}", names.join(", "))
        }
        Space::Dense => {
            let range = |dim: &hectare_dependence::loop_nest::LoopVar| match dim.bounds {
                Some((start, end)) => format!("{} in {start}..{end}", dim.name),
                None => dim.name.clone(),
            };
            nest.dims.iter().map(range).collect::<Vec<_>>().join(", ")
        }
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e3 => format!("{b:.0} bytes"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b => format!("{:.1} MB", b / 1e6),
    }
}

fn cost(cost: &Cost) -> String {
    format!(
        "about {:.3} ms a pass; {}, {} change hands, the busiest worker has {:.2} times the average",
        cost.here() / 1e6,
        counted(cost.steps as u64, "step"),
        size(cost.moved_bytes),
        cost.imbalance
    )
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "loop {}: {}", self.loop_name, self.space)?;
        for relax in &self.relaxes {
            writeln!(f, "  Under {relax}: {}.", relax.consistency.description())?;
        }
        match (self.conflicts.as_slice(), self.order) {
            ([], _) if !self.shared.is_empty() => writeln!(
                f,
                "  No two iterations touch the same element, except in arrays whose dependences are relaxed: they can run in \
                 any order, in parallel."
            )?,
            ([], _) => writeln!(
                f,
                "  No two iterations touch the same element: they can run in any order, in parallel."
            )?,
            (conflicts, Order::Unordered) => {
                writeln!(
                    f,
                    "  These iterations must not run at the same time (their order does not matter):"
                )?;
                conflicts.iter().try_for_each(|conflict| writeln!(f, "    - {conflict}"))?;
            }
            (conflicts, Order::Ordered) => {
                writeln!(f, "  These iterations must run one after the other, in the order of the loop:")?;
                conflicts.iter().try_for_each(|conflict| writeln!(f, "    - {conflict}"))?;
            }
        }
        writeln!(f, "  Schedules for {}:", counted(self.workers as u64, "worker"))?;
        for candidate in &self.candidates {
            match &candidate.verdict {
                Verdict::Chosen(c) if self.runs_as_found() => {
                    writeln!(f, "    - {}: without what was found below: {}", candidate.name, cost(c))?
                }
                Verdict::Chosen(c) => writeln!(f, "    * {} (chosen): {}", candidate.name, cost(c))?,
                Verdict::Costlier(c) => {
                    let dearer = self.cost_of_chosen().is_none_or(|chosen| c.here() > chosen);
                    let how = if dearer { "but costs more" } else { "and costs as much" };
                    writeln!(f, "    - {}: possible, {how}: {}", candidate.name, cost(c))?
                }
                Verdict::DifferentBits(c) => writeln!(
                    f,
                    "    - {}: would be faster between these hosts, but would give other bits than one host (`allow_link_schedules`): {}",
                    candidate.name,
                    cost(c)
                )?,
                Verdict::Refused(why) => writeln!(f, "    - {}: not possible: {why}", candidate.name)?,
            }
        }
        if self.is_dynamic {
            let blocks = "    Idle workers take its blocks as they come free: several per worker, in a different order each time";
            writeln!(f, "{blocks} ({}).", counted(self.steps as u64 * self.workers as u64, "block"))?;
        }
        writeln!(f, "  Arrays:")?;
        for (name, placement) in &self.arrays {
            let shared = self.shared.iter().find(|(shared, _)| shared == name);
            match shared.filter(|_| *placement == ArrayPlacement::Relaxed) {
                Some((_, how)) => writeln!(f, "    - {name}: {how}")?,
                None if self.runs_as_found() && *placement == ArrayPlacement::Whole => {
                    writeln!(f, "    - {name}: {}", placed(&ArrayPlacement::InPlace))?
                }
                None => writeln!(f, "    - {name}: {}", placed(placement))?,
            }
        }
        if let Some(inspected) = &self.inspected {
            write!(f, "{inspected}")?;
        }
        if let Some(BetweenHosts { hosts, handed, begun, read, links, link }) = &self.between_hosts {
            writeln!(
                f,
                "  Between {hosts} hosts, a pass: {} for parts that change hands, {} for those that go back to where it begins, {} for what is read \
                 of other hosts",
                size(*handed),
                size(*begun),
                size(*read)
            )?;
            for LinkBytes { from, to, predicted, measured } in links {
                write!(f, "    - from host {from} to host {to}: {} predicted", size(*predicted))?;
                match measured {
                    Some(measured) => writeln!(f, ", {} measured", size(*measured))?,
                    None => writeln!(f)?,
                }
            }
            writeln!(
                f,
                "    Measured before the loop was planned: a barrier {:.0} us, a hand-over {:.0} us, {:.2} Gbit/s from each host",
                link.barrier_ns / 1e3,
                link.hand_over_ns / 1e3,
                link.bytes_per_ns * 8.0
            )?;
        }
        match &self.advice {
            Some(advice) => writeln!(f, "  It runs on one worker; {advice}."),
            None => Ok(()),
        }
    }
}

fn placed(placement: &ArrayPlacement) -> String {
    match placement {
        ArrayPlacement::Replicated => "only read; every worker reads it in place".into(),
        ArrayPlacement::Relaxed => "all of it used by every worker; its dependences are relaxed".into(),
        ArrayPlacement::InPlace => "in one piece; each worker writes its elements in place".into(),
        ArrayPlacement::Whole => "all of it on the one worker that runs the loop".into(),
        ArrayPlacement::Ghosted { dim, owners, .. } => {
            let parts = counted(owners.len() as u64, "part");
            format!(
                "cut into {parts} along its dimension {dim}, each stays with one worker, who reads of the others what they were before the \
                 pass"
            )
        }
        ArrayPlacement::Parts { dim, bounds, rotates, .. } => {
            let parts = counted(bounds.len() as u64 - 1, "part");
            let mut text = format!("cut into {parts} along its dimension {dim}");
            let how = if *rotates { "handed from worker to worker" } else { "each stays with one worker" };
            let _ = write!(text, ", {how}");
            text
        }
    }
}
