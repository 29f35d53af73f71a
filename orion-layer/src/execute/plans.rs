//! The plans of a program's loops, as long as they may be needed again.
use super::LoopPlan;
use crate::array::withdraw_left;
use crate::context::Context;
use crate::relax::LoopReport;
use crate::site::Site;
use std::collections::HashMap;
use std::rc::Rc;

/// The weight of the plans that are kept (see [`LoopPlan::weight`]): about two thousand of simple loops, some ten megabytes.
const MOST: usize = 1 << 18;
/// So many are kept, however heavy.
const FEWEST: usize = 16;

/// The identity of a plan: the loop, its arrays, its space and the values that its description depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) site: Site,
    pub(crate) arrays: Vec<(u64, bool)>,
    pub(crate) space: u64,
    pub(crate) invariants: Vec<i64>,
    pub(crate) relax: [u64; 4],
    /// A schedule of the program's own, as it shows itself.
    pub(crate) schedule: Option<String>,
    /// Whether links may choose schedules that change bits.
    pub(crate) follows_links: bool,
}

impl Key {
    /// Whether the loop uses an array, or runs over its entries, whose space has the array's number.
    fn is_of(&self, array: u64) -> bool {
        self.space == array || self.arrays.iter().any(|(number, _)| *number == array)
    }
}

#[derive(Debug)]
struct Kept {
    /// None if an array of it is gone. It counts on, as other workers may not have dropped that yet.
    plan: Option<Rc<LoopPlan>>,
    weight: usize,
    /// When it was last used: the number of a use, the same on every worker.
    used: u64,
}

/// The plans of a program.
#[derive(Debug, Default)]
struct Plans {
    known: HashMap<Key, Kept>,
    /// Of each loop, the last plan that was dropped, with what those before it have cost.
    past: HashMap<Site, Rc<LoopPlan>>,
    /// Those that were dropped, and still have memory of the job.
    left: Vec<Rc<LoopPlan>>,
    /// Of all that are known.
    weight: usize,
    uses: u64,
    made: u64,
}

impl Context<'_> {
    /// The plans of the program that are kept, and of each loop the last one that is not.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Rc<LoopPlan>> {
        let plans = self.extensions.get::<Plans>().into_iter();
        plans.flat_map(|plans| {
            plans.known.values().filter_map(|kept| kept.plan.as_ref()).chain(plans.past.values())
        })
    }

    /// How many plans were made.
    pub(super) fn plans_made(&self) -> u64 {
        self.extensions.get::<Plans>().map_or(0, |plans| plans.made)
    }

    /// Whether a loop was planned for `ranges` ranges, or other values of what it depends on, over the same arrays.
    pub(super) fn is_planned_for(&self, site: Site, ranges: usize) -> bool {
        let Some(plans) = self.extensions.get::<Plans>() else { return false };
        let mut counts: HashMap<&[(u64, bool)], usize> = HashMap::new();
        plans.known.keys().filter(|key| key.site == site).any(|key| {
            let count = counts.entry(&key.arrays).or_default();
            *count += 1;
            *count >= ranges
        })
    }

    pub(super) fn plan_of(&mut self, key: &Key) -> Option<Rc<LoopPlan>> {
        let plans = self.extensions.get_mut::<Plans>()?;
        plans.uses += 1;
        let kept = plans.known.get_mut(key)?;
        kept.used = plans.uses;
        kept.plan.clone()
    }

    /// Keeps a plan, and drops those of arrays that are gone, and those that were not used for long. The latter are the same on every
    /// worker, so that all make a plan anew or none does.
    pub(super) fn keep_plan(&mut self, key: Key, plan: Rc<LoopPlan>) {
        let dropped = self.dropped_arrays.take();
        dropped.iter().for_each(|number| withdraw_left(self, *number));
        if self.extensions.get::<Plans>().is_none() {
            self.extensions.put(Plans::default());
        }
        let plans = self.extensions.get_mut::<Plans>().expect("just put there");
        plans.made = plans.made.max(plan.number + 1);
        if !dropped.is_empty() {
            plans.drop_plans_of(&dropped);
        }
        let kept = Kept { weight: plan.weight(), plan: Some(plan), used: plans.uses };
        plans.weight += kept.weight;
        if let Some(before) = plans.known.insert(key, kept) {
            plans.weight -= before.weight;
        }
        plans.make_room();
        for plan in std::mem::take(&mut plans.left) {
            plan.give_back(self.fabric.worker);
        }
    }
}

impl Plans {
    fn drop_plans_of(&mut self, arrays: &[u64]) {
        let is_gone = |key: &Key| arrays.iter().any(|array| key.is_of(*array));
        let gone = self.known.iter_mut().filter(|(key, kept)| kept.plan.is_some() && is_gone(key));
        let gone = gone.filter_map(|(key, kept)| Some((key.site, kept.plan.take()?))).collect();
        self.note_past(gone);
    }

    /// Notes the last plan of each loop among those that were dropped, and what the others have cost.
    fn note_past(&mut self, mut dropped: Vec<(Site, Rc<LoopPlan>)>) {
        dropped.sort_by_key(|(_, plan)| plan.number);
        for (site, plan) in dropped {
            let mut reports: Vec<LoopReport> = Vec::new();
            if let Some(before) = self.past.get(&site) {
                plan.timing.borrow_mut().add(&before.timing.borrow());
                reports.extend_from_slice(&before.reports.borrow());
            }
            plan.reports.take().into_iter().for_each(|report| LoopReport::collect(&mut reports, report));
            plan.reports.replace(reports);
            self.left.push(plan.clone());
            self.past.insert(site, plan);
        }
    }

    /// Drops the plans that were not used for longest, if there are too many.
    fn make_room(&mut self) {
        if self.weight <= MOST || self.known.len() <= FEWEST {
            return;
        }
        let mut oldest: Vec<(u64, usize)> =
            self.known.values().map(|kept| (kept.used, kept.weight)).collect();
        oldest.sort_unstable();
        let (mut last, mut weight) = (0, self.weight);
        // Not one at a time: this looks at all.
        for (used, of_it) in &oldest[..oldest.len() - FEWEST] {
            if weight <= MOST / 8 * 7 {
                break;
            }
            (last, weight) = (*used, weight - of_it);
        }
        self.weight = weight;
        let gone = self.known.extract_if(|_, kept| kept.used <= last);
        let gone = gone.filter_map(|(key, kept)| Some((key.site, kept.plan?))).collect();
        self.note_past(gone);
    }
}
