//! The directory's table: which area has a name, and which areas a group has; every question is a look-up.
use crate::types::{AreaId, Description, HostId, NameError};
use std::collections::{BTreeMap, BTreeSet};

/// An area that the directory knows.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) area: AreaId,
    pub(super) description: Description,
    /// Its host has said so since its agent started.
    confirmed: bool,
}

/// All names, by what they are asked for.
#[derive(Debug, Default)]
pub(super) struct Table {
    names: BTreeMap<String, Named>,
    /// Areas of each group that has a name. Those of one host lie side by side.
    groups: BTreeMap<String, BTreeSet<AreaId>>,
    areas: BTreeMap<AreaId, String>,
    /// Areas that their hosts keep, and why: of one name there may be one on each host, beside one that all hosts can have.
    kept: BTreeMap<String, BTreeMap<AreaId, NameError>>,
    kept_areas: BTreeMap<AreaId, String>,
}

impl Table {
    /// The area that all hosts can have under a name.
    pub(super) fn named(&self, name: &str) -> Option<&Named> {
        self.names.get(name)
    }

    /// An area of a name that another host than `asks` keeps, and why.
    pub(super) fn kept(&self, name: &str, asks: HostId) -> Option<(AreaId, NameError)> {
        let mut kept = self.kept.get(name)?.iter();
        kept.find(|(area, _)| area.group.home() != asks).map(|(area, why)| (*area, *why))
    }

    /// Which area has the name that another one would have, or is of the same group and of another host.
    pub(super) fn holder(&self, area: AreaId, description: &Description) -> Option<(AreaId, NameError)> {
        if let Some(named) = self.names.get(&description.name).filter(|named| named.area != area) {
            return Some((named.area, NameError::Taken { by: named.area.group.home() }));
        }
        // The ends: areas of one host lie side by side.
        let of_it = self.groups.get(&description.group)?;
        let ends = [of_it.first(), of_it.last()].into_iter().flatten();
        let mut elsewhere = ends.filter(|other| other.group.home() != area.group.home());
        elsewhere.next().map(|other| (*other, NameError::Group { by: other.group.home() }))
    }

    /// An area that all hosts can have.
    pub(super) fn enter(&mut self, area: AreaId, description: Description) {
        self.remove(area);
        let name = description.name.clone();
        if !description.group.is_empty() {
            self.groups.entry(description.group.clone()).or_default().insert(area);
        }
        self.areas.insert(area, name.clone());
        if let Some(before) = self.names.insert(name, Named { area, description, confirmed: true }) {
            self.areas.remove(&before.area);
            self.leave_group(&before);
        }
    }

    /// An area that its host keeps.
    pub(super) fn keep(&mut self, area: AreaId, name: String, why: NameError) {
        self.remove(area);
        self.kept.entry(name.clone()).or_default().insert(area, why);
        self.kept_areas.insert(area, name);
    }

    pub(super) fn remove(&mut self, area: AreaId) {
        if let Some(named) = self.areas.remove(&area).and_then(|name| self.names.remove(&name)) {
            self.leave_group(&named);
        }
        if let Some(name) = self.kept_areas.remove(&area)
            && let Some(kept) = self.kept.get_mut(&name)
        {
            kept.remove(&area);
            if kept.is_empty() {
                self.kept.remove(&name);
            }
        }
    }

    fn leave_group(&mut self, named: &Named) {
        if let Some(group) = self.groups.get_mut(&named.description.group) {
            group.remove(&named.area);
            if group.is_empty() {
                self.groups.remove(&named.description.group);
            }
        }
    }

    /// A host's agent is another one: it says again what it has.
    pub(super) fn doubt(&mut self, host: HostId) {
        for named in self.names.values_mut().filter(|named| named.area.group.home() == host) {
            named.confirmed = false;
        }
        let of_it = self.kept_areas.keys().filter(|area| area.group.home() == host);
        for area in of_it.copied().collect::<Vec<_>>() {
            self.remove(area);
        }
    }

    /// Removes what was not said again, but for areas of which `waits` says that they wait to be decided.
    pub(super) fn remove_doubtful(&mut self, waits: impl Fn(AreaId) -> bool) {
        let doubtful = self.names.values().filter(|named| !named.confirmed && !waits(named.area));
        for area in doubtful.map(|named| named.area).collect::<Vec<_>>() {
            self.remove(area);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ElementType, GroupId};
    use proptest::prelude::*;

    fn area(host: u16, serial: u64) -> AreaId {
        AreaId { group: GroupId::new(HostId(host), serial), member: 0 }
    }

    fn description(name: u8, group: u8) -> Description {
        let group = if group == 0 { String::new() } else { format!("g{group}") };
        let element = ElementType { kind: 1, size: 8, align: 8 };
        Description { name: format!("n{name}"), group, element, bytes: 8, row: 1, on_demand: false }
    }

    /// The same by walking over all there is.
    #[derive(Default)]
    struct Plain {
        named: Vec<(AreaId, Description)>,
        kept: Vec<(AreaId, String)>,
    }

    impl Plain {
        fn remove(&mut self, area: AreaId) {
            self.named.retain(|(other, _)| *other != area);
            self.kept.retain(|(other, _)| *other != area);
        }

        fn holder(&self, area: AreaId, of: &Description) -> Option<NameError> {
            let taken = self.named.iter().find(|(other, it)| *other != area && it.name == of.name);
            let owner = area.group.home();
            let grouped = self.named.iter().filter(|_| !of.group.is_empty());
            let mut grouped =
                grouped.filter(|(other, it)| it.group == of.group && other.group.home() != owner);
            match taken {
                Some((other, _)) => Some(NameError::Taken { by: other.group.home() }),
                None => grouped.next().map(|(other, _)| NameError::Group { by: other.group.home() }),
            }
        }
    }

    proptest! {
        #[test]
        fn lookups_find_what_a_walk_finds(
            steps in prop::collection::vec((0u16..4, 0u64..6, 0u8..5, 0u8..3, 0u8..8), 0..60),
        ) {
            let (mut table, mut plain) = (Table::default(), Plain::default());
            for (host, serial, name, group, what) in steps {
                let (area, it) = (area(host, serial), description(name, group));
                let expected = plain.holder(area, &it);
                let found = table.holder(area, &it);
                // Of a group with areas of several hosts, which cannot be, any will do.
                prop_assert_eq!(found.map(|(_, error)| error), expected);
                match what {
                    0 => {
                        table.remove(area);
                        plain.remove(area);
                    }
                    1 => {
                        let why = NameError::Local { by: HostId(host) };
                        table.keep(area, it.name.clone(), why);
                        plain.remove(area);
                        plain.kept.push((area, it.name));
                    }
                    2 => {
                        table.doubt(HostId(host));
                        table.remove_doubtful(|_| false);
                        plain.named.retain(|(other, _)| other.group.home() != HostId(host));
                        plain.kept.retain(|(other, _)| other.group.home() != HostId(host));
                    }
                    _ if expected.is_none() => {
                        table.enter(area, it.clone());
                        plain.remove(area);
                        plain.named.push((area, it));
                    }
                    _ => {}
                }
                for name in (0..5).map(|name| format!("n{name}")) {
                    let named = plain.named.iter().find(|(_, it)| it.name == name).map(|(area, _)| *area);
                    prop_assert_eq!(table.named(&name).map(|named| named.area), named);
                    for asks in (0..4).map(HostId) {
                        let mut of_it: Vec<AreaId> =
                            plain.kept.iter().filter(|(_, other)| *other == name).map(|(area, _)| *area).collect();
                        of_it.retain(|area| area.group.home() != asks);
                        let kept = table.kept(&name, asks).map(|(area, _)| area);
                        prop_assert_eq!(kept, of_it.into_iter().min());
                    }
                }
            }
        }
    }
}
