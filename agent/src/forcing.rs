//! Forced syncs of this host's areas, which workers of other hosts request.
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, Forced, Published};
use hectare_net::GroupId;
use std::collections::BTreeMap;
use tracing::debug;

/// Those under way, by group.
#[derive(Debug, Default)]
pub(crate) struct Forcing {
    groups: BTreeMap<GroupId, Vec<Forced>>,
    /// Questions for groups whose owners have lent them, that are not answered yet, and what of each could not be published yet.
    lent: Vec<(GroupId, Vec<dsm::AreaId>)>,
    /// Those that are made and not told yet: whether they were postponed.
    made: BTreeMap<GroupId, bool>,
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
        if lent.is_empty() && !self.lent.iter().any(|(other, _)| *other == group) {
            return true;
        }
        let is_put_off = |(area, published)| (published == Published::PutOff).then_some(area);
        self.lent.push((group, lent.into_iter().filter_map(is_put_off).collect()));
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
        for (_, left) in &mut self.lent {
            left.retain(|area| agent.publish_lent(*area) == Some(Published::PutOff));
        }
    }

    /// Takes those that are made, but for groups of which something is still untold.
    pub(crate) fn take_made(&mut self, is_untold: impl Fn(&GroupId) -> bool) -> Vec<(GroupId, bool)> {
        let made = self.made.extract_if(.., |group, _| !is_untold(group));
        let lent = self.lent.extract_if(.., |(group, left)| left.is_empty() && !is_untold(group));
        made.chain(lent.map(|(group, _)| (group, false))).collect()
    }
}
