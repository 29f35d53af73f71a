//! Names of areas between hosts: workers wait for those of other hosts, and hear why one cannot be had; owners hear of conflicts.
use super::SegmentMemory;
use hectare_dsm::agent::{Conflict, Over, Refusal};
use hectare_dsm::{ElementType, Unshared};
use hectare_net::wire::Wanted;
use hectare_net::{AreaId, Event, HostId, NameError};
use tracing::{debug, error, warn};

/// A name that workers wait for.
#[derive(Debug)]
pub(super) struct Asked {
    name: String,
    /// How often the directory has said that there is none.
    unknown: u32,
    /// It has not answered yet.
    is_open: bool,
}

impl SegmentMemory {
    /// A worker here took an area of another host for something else: its owner's host is told, once.
    pub(super) fn taken_for(&mut self, name: &str, element: ElementType) {
        let known = self.agent.find(name).and_then(|area| self.received.id_of(area));
        let Some(area) = known else { return };
        let [size, align, kind] = element.to_parts();
        if self.taken_for.insert((area, [size, align, kind])) {
            warn!(area = name, %element, "an area of another host was taken for one of other elements");
            let element = hectare_net::ElementType { kind, size, align };
            self.events.push_back(Event::TakenFor { area, element });
        }
    }

    /// Asks the directory for a name, again if it has said that there is none.
    pub(super) fn want(&mut self, name: String) {
        let known = self.wanted.iter_mut().find(|(_, asked)| asked.name == name);
        let (ticket, asked) = match known {
            Some((_, asked)) if asked.is_open => return,
            Some((ticket, asked)) => (*ticket, asked),
            None => {
                self.last_ticket += 1;
                let asked = Asked { name, unknown: 0, is_open: false };
                (self.last_ticket, self.wanted.entry(self.last_ticket).or_insert(asked))
            }
        };
        asked.is_open = true;
        let wanted = Wanted { name: asked.name.clone(), element: None, bytes: None, asked: asked.unknown };
        self.events.push_back(Event::Attach { ticket, wanted, interval_us: 0 });
    }

    /// The directory has accepted the name of an area of this host.
    pub(crate) fn accepted(&mut self, area: AreaId) {
        self.own.accept(&self.agent, area);
        self.local.accept(&self.agent, area);
    }

    /// The name of an area of this host was refused, or others cannot have it: its owner is told.
    pub(crate) fn refused(&mut self, area: AreaId, error: NameError) {
        let (over, by) = match error {
            NameError::Taken { by } => (Over::Name, by),
            NameError::Group { by } => (Over::Group, by),
            NameError::Members { by } => (Over::Members, by),
            NameError::Long { by } => (Over::Length, by),
            _ => return,
        };
        error!(area = self.name_of(area), %error, "other hosts cannot use an area of this host");
        self.tell_conflict(area, Conflict { over, host: usize::from(by.0), is_known: false });
    }

    /// Another host's area was refused because of this one, or it asked for this one as something else: its owner is told, too.
    /// That others cannot have it is known to its owner.
    pub(crate) fn conflicted(&mut self, area: AreaId, by: HostId, error: NameError) {
        warn!(area = self.name_of(area), %by, %error, "another host asked for an area");
        let over = match error {
            NameError::Taken { .. } => Over::Name,
            NameError::Group { .. } => Over::Group,
            NameError::Type { here, .. } => Over::Type([here.size, here.align, here.kind]),
            _ => return,
        };
        self.tell_conflict(area, Conflict { over, host: usize::from(by.0), is_known: true });
    }

    pub(super) fn name_of(&self, id: AreaId) -> String {
        let area = self.own.area(id).or_else(|| self.local.area(id));
        area.and_then(|area| self.agent.describe(area)).map_or_else(String::new, |about| about.name)
    }

    fn tell_conflict(&self, id: AreaId, conflict: Conflict) {
        if let Some(area) = self.own.area(id) {
            self.agent.tell_conflict(area, conflict);
        }
    }

    /// The answer to a question for a name.
    pub(crate) fn attached(&mut self, ticket: u64, result: Result<AreaId, NameError>, found: Option<AreaId>) {
        if result == Err(NameError::Unknown) {
            if let Some(asked) = self.wanted.get_mut(&ticket) {
                (asked.unknown, asked.is_open) = (asked.unknown.wrapping_add(1), false);
                self.agent.refuse(&asked.name, &Refusal::Unknown);
            }
            return;
        }
        let name = self.wanted.remove(&ticket).map(|asked| asked.name).unwrap_or_default();
        match result {
            Ok(id) => {
                if let Some(area) = self.received.area(id) {
                    debug!(area = name, created_by = %id.group.home(), "an area of another host is here");
                    self.agent.show(area);
                }
            }
            // Whoever waits asks again.
            Err(NameError::Deleted) => debug!(area = name, "its owner has deleted an area"),
            Err(error) => {
                warn!(area = name, %error, "an area of another host cannot be had");
                self.agent.refuse(&name, &self.refusal(error, found));
            }
        }
    }

    /// The refusal for whoever waits for an area of another host.
    fn refusal(&self, error: NameError, found: Option<AreaId>) -> Refusal {
        let unshared = |by: HostId, why| Refusal::Unshared { host: usize::from(by.0), why };
        match (error, found) {
            (NameError::Unsent { by }, _) => unshared(by, Unshared::Memory),
            (_, Some(found)) => self.received.refusal(found, error),
            (NameError::Local { by }, _) => unshared(by, Unshared::Local),
            (NameError::Members { by }, _) => unshared(by, Unshared::Members),
            (NameError::Long { by }, _) => unshared(by, Unshared::Length),
            (error, None) => Refusal::NotReceived { host: usize::from(self.host.0), why: error.to_string() },
        }
    }
}
