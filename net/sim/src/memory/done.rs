//! Whether a host is done, and where it stands if it is not.
use super::HostMemory;
use super::leaving::Stay;
use crate::judge::Judge;
use crate::options::Mode;

impl HostMemory {
    /// Whether all received groups show the newest state, and the worker has done all.
    pub(crate) fn is_done(&self) -> bool {
        let judge = self.judge.borrow();
        judge.all_are_owned()
            && self.own.values().all(|own| own.given.is_none())
            && self.worker.iteration == self.iterations
            && judge.workers().all(|(host, stand)| self.workers.get(host) == Some(stand))
            && !(self.worker.waits && self.mode == Mode::Barrier && self.lowest < self.worker.clock)
            && match self.stay {
                Stay::Ever => self.shows_all(&judge),
                stay => stay == Stay::Deserted,
            }
    }

    /// Whether all received groups show the newest state.
    fn shows_all(&self, judge: &Judge) -> bool {
        self.remote.iter().filter(|(_, remote)| !remote.members.is_empty()).all(|(group, remote)| {
            let newest = judge.newest(*group).map(|newest| &newest.state.versions);
            // Deleted areas are to be let go.
            !judge.is_deleted(*group)
                && remote.members.iter().all(|member| member.is_ownerless == judge.is_dropped(*group))
                && remote.requests.are_answered()
                && (remote.is_on_demand()
                    || newest.is_none_or(|newest| {
                        remote
                            .members
                            .iter()
                            .zip(newest)
                            .all(|(member, version)| member.version == Some(*version))
                    }))
        })
    }

    /// Says where it stands, for a run that does not end.
    pub(crate) fn stands(&self) -> String {
        let judge = self.judge.borrow();
        let mut text = format!(
            "{}: iteration {}, clocks {} of its own, {} of all, heard {:?};",
            self.host, self.worker.iteration, self.local, self.lowest, self.clocks
        );
        if let Some(group) = self.awaited {
            text += &format!(" waits for group {:x};", group.0);
        }
        for (group, remote) in &self.remote {
            let newest = judge.newest(*group).map(|newest| (newest.state.round, newest.state.label));
            text += &format!(
                " group {:x}: shows round {:?} of (round, label) {newest:?}, arrival {:?}, all answered {}, {:?};",
                group.0,
                remote.round,
                remote.arrival,
                remote.requests.are_answered(),
                remote.owner
            );
            if judge.is_deleted(*group) {
                text += " which is deleted;";
            }
            let versions = judge.newest(*group).map(|newest| &newest.state.versions);
            for (index, member) in remote.members.iter().enumerate() {
                let newest = versions.map(|versions| versions[index]);
                if member.is_ownerless != judge.is_dropped(*group)
                    || newest.is_some_and(|newest| member.version != Some(newest))
                {
                    text += &format!(
                        " its area {index} shows version {:?} of {newest:?}, without an owner {}, dropped {};",
                        member.version,
                        member.is_ownerless,
                        judge.is_dropped(*group)
                    );
                }
            }
        }
        text += &format!(" failed and left workers {:?};", self.workers);
        for (group, own) in self.own.iter().filter(|(_, own)| own.given.is_some()) {
            text += &format!(" gave {group:?} to {:?};", own.given);
        }
        text
    }
}
