//! Forced syncs of this host's areas, which workers of other hosts request.
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, Forced, Published};
use hectare_net::GroupId;
use std::collections::{BTreeMap, BTreeSet};
use tracing::debug;

/// Those under way, by group.
#[derive(Debug, Default)]
pub(crate) struct Forcing {
    groups: BTreeMap<GroupId, Vec<Forced>>,
    /// Groups whose owners have lent them, of which questions are not answered yet.
    lent: BTreeMap<GroupId, Shown>,
    /// Those that are made and not told yet: whether they were postponed.
    made: BTreeMap<GroupId, bool>,
}

/// A group that is lent.
#[derive(Debug, Default)]
struct Shown {
    /// How many questions are not answered yet: each is when nothing is left.
    questions: usize,
    /// Areas that could not be published yet.
    left: BTreeSet<dsm::AreaId>,
}

impl Forcing {
    /// Has the areas of a group published.
    pub(crate) fn begin(&mut self, agent: &Agent, group: GroupId, areas: &[dsm::AreaId]) {
        let force = |area: &dsm::AreaId| {
            agent.force(*area).inspect_err(|error| debug!(%error, "an area that goes is not published")).ok()
        };
        self.groups.insert(group, areas.iter().filter_map(force).collect());
    }

    /// Has the areas of a group published that their owners have lent. False if that is to be told.
    pub(crate) fn show(&mut self, agent: &Agent, group: GroupId, areas: &[dsm::AreaId]) -> bool {
        let publish = |area: &dsm::AreaId| Some((*area, agent.publish_lent(*area)?));
        let lent: Vec<_> = areas.iter().filter_map(publish).collect();
        if lent.is_empty() && !self.lent.contains_key(&group) {
            return true;
        }
        let is_put_off = |(area, published)| (published == Published::PutOff).then_some(area);
        let shown = self.lent.entry(group).or_default();
        shown.questions += 1;
        shown.left.extend(lent.into_iter().filter_map(is_put_off));
        false
    }

    /// Whether rounds are waited for.
    pub(crate) fn waits(&self) -> bool {
        !(self.groups.is_empty() && self.lent.is_empty())
    }

    /// Looks which are made. To be called before the look at what was published: so that is told before.
    pub(crate) fn look(&mut self, agent: &Agent) {
        self.groups.retain(|group, forced| {
            let outcomes: Option<Vec<Published>> = forced.iter().map(|it| agent.published(it)).collect();
            let Some(outcomes) = outcomes else { return true };
            // A group of which all areas are gone has nothing to tell.
            let is_all = !outcomes.is_empty() && outcomes.iter().all(|outcome| *outcome == Published::All);
            self.made.insert(*group, !is_all);
            false
        });
        for Shown { left, .. } in self.lent.values_mut() {
            left.retain(|area| agent.publish_lent(*area) == Some(Published::PutOff));
        }
    }

    /// Takes those that are made, but for groups of which something is still untold.
    pub(crate) fn take_made(&mut self, is_untold: impl Fn(&GroupId) -> bool) -> Vec<(GroupId, bool)> {
        let made = self.made.extract_if(.., |group, _| !is_untold(group));
        let lent = self.lent.extract_if(.., |group, shown| shown.left.is_empty() && !is_untold(group));
        // An event for each question.
        let answers = lent.flat_map(|(group, shown)| std::iter::repeat_n((group, false), shown.questions));
        made.chain(answers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_dsm::{AreaSpec, Job};
    use hectare_net::HostId;

    /// An area of which observers read all copies cannot be published. Others ask for it again and again meanwhile.
    #[test]
    fn questions_for_one_group_are_one_thing_to_do() {
        let job = Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
        let (agent, mut worker) = (job.agent().unwrap(), job.worker().unwrap());
        let mut owned = worker.create::<u64>(AreaSpec::new("rows").copies(2).on_demand(), 8).unwrap();
        let (observer, area) = (job.observer().unwrap(), owned.area());
        let first = observer.read(&area).unwrap();
        owned.write(&worker).unwrap().fill(1);
        worker.sync().unwrap();
        let second = observer.read(&area).unwrap();
        owned.write(&worker).unwrap().fill(2);
        let lent = owned.lend(&worker).unwrap();
        let (group, areas) = (GroupId::new(HostId(0), 0), [agent.find("rows").unwrap()]);
        let mut forcing = Forcing::default();
        for questions in 1..=3 {
            assert!(!forcing.show(&agent, group, &areas));
            forcing.look(&agent);
            assert!(forcing.take_made(|_| false).is_empty());
            let shown = &forcing.lent[&group];
            assert_eq!((forcing.lent.len(), shown.questions, shown.left.len()), (1, questions, 1));
        }
        drop((first, second));
        forcing.look(&agent);
        assert!(forcing.take_made(|_| true).is_empty());
        assert_eq!(forcing.take_made(|_| false), [(group, false); 3]);
        assert!(!forcing.waits());
        drop(lent);
    }
}
