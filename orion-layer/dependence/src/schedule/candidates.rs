//! The runtime's own schedules that a loop may get.
use super::build::{Builder, Built, Crew, Plan, Written, extents};
use super::cost::work_ns;
use super::kinds::SERIAL;
use super::{Blocks, Rotation, Schedule, ScheduleError, Serial, Wavefront};
use crate::analysis::Dependences;
use crate::loop_nest::{LoopNest, Order};

/// The most dimensions that a rotation is tried over.
const MOST_ROTATED: usize = 3;

/// One of the runtime's own schedules.
pub(super) enum Kind {
    Blocks(Blocks),
    Rotation(Rotation),
    Wavefront(Wavefront),
    Serial,
}

/// A candidate, with its name in the loop's terms.
pub(super) struct Considered {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether arrays that cannot be cut are as [`Crew::uncut`] says.
    pub(super) uncut: bool,
}

impl Considered {
    fn new(name: String, kind: Kind) -> Considered {
        Considered { name, kind, uncut: false }
    }

    pub(super) fn plan(&self) -> Plan<'_> {
        let schedule: &dyn Schedule = match &self.kind {
            Kind::Blocks(blocks) => blocks,
            Kind::Rotation(rotation) => rotation,
            Kind::Wavefront(wavefront) => wavefront,
            Kind::Serial => &Serial,
        };
        let wavefront = if let Kind::Wavefront(wavefront) = &self.kind { Some(wavefront) } else { None };
        Plan { schedule, wavefront, written: if self.uncut { Written::Uncut } else { Written::Cut } }
    }

    /// Builds it; a wavefront only if it does not have too many tiles.
    pub(super) fn build(&self, builder: Builder<'_>, crew: Crew<'_>) -> Result<Built, ScheduleError> {
        if let Kind::Wavefront(wavefront) = &self.kind {
            wavefront.check_tiles(&extents(builder.nest), crew.workers)?;
        }
        builder.build(self.plan(), crew)
    }
}

/// The schedules worth a look, with their names in the loop's terms.
pub(super) fn candidates(nest: &LoopNest, dependences: &Dependences) -> Vec<Considered> {
    let name = |dim: usize| nest.dims[dim].name.clone();
    let mut list: Vec<Considered> = Vec::new();
    let free = dependences.is_empty();
    for dim in 0..nest.dims.len() {
        let kind = if free { "fully parallel" } else { "one dimension" };
        list.push(Considered::new(
            format!("{kind}, in blocks of {}", name(dim)),
            Kind::Blocks(Blocks { dim }),
        ));
    }
    if nest.order == Order::Unordered {
        let sets = dependences.rotation_sets();
        for set in sets.iter().filter(|set| (2..=MOST_ROTATED).contains(&set.len())) {
            for stays in set {
                let others: Vec<usize> = set.iter().copied().filter(|dim| dim != stays).collect();
                let going: Vec<String> = others.iter().map(|dim| name(*dim)).collect();
                let dims = std::iter::once(*stays).chain(others).collect();
                list.push(Considered::new(
                    format!(
                        "rotation: {} stays, {} around",
                        name(*stays),
                        if going.len() == 1 {
                            format!("{} goes", going[0])
                        } else {
                            format!("{} go", going.join(" and "))
                        }
                    ),
                    Kind::Rotation(Rotation::over(dims)),
                ));
            }
        }
    }
    list.push(Considered::new(SERIAL.into(), Kind::Serial));
    list
}

/// Those of `list` of one step whose arrays cannot be cut, by their `results`: with ghost regions.
pub(super) fn with_ghosts(list: &[Considered], results: &[Result<Built, ScheduleError>]) -> Vec<Considered> {
    let blocks = |(one, result): (&Considered, &Result<Built, ScheduleError>)| match (&one.kind, result) {
        (Kind::Blocks(blocks), Err(ScheduleError::Placement(_))) => Some(Considered {
            name: format!("{}, with ghost regions", one.name),
            kind: Kind::Blocks(blocks.clone()),
            uncut: true,
        }),
        _ => None,
    };
    list.iter().zip(results).filter_map(blocks).collect()
}

/// Schedules whose arrays lie in place: those of `list` whose arrays cannot be cut, by their `results`, and wavefronts.
pub(super) fn in_place(
    nest: &LoopNest,
    dependences: &Dependences,
    list: &[Considered],
    results: &[Result<Built, ScheduleError>],
) -> Vec<Considered> {
    let name = |dim: usize| nest.dims[dim].name.as_str();
    let mut found = Vec::new();
    for (one, result) in list.iter().zip(results) {
        if !matches!(result, Err(ScheduleError::Placement(_))) {
            continue;
        }
        let kind = match &one.kind {
            Kind::Blocks(blocks) => Kind::Blocks(blocks.clone()),
            Kind::Rotation(rotation) => Kind::Rotation(rotation.clone()),
            Kind::Wavefront(_) | Kind::Serial => continue,
        };
        found.push(Considered { name: format!("{}, arrays in place", one.name), kind, uncut: true });
    }
    for wavefront in Wavefront::all(nest, dependences, &extents(nest), work_ns(nest)) {
        let Wavefront { outer, inner, .. } = wavefront;
        let name =
            format!("wavefront: {} in turn, each some {} behind the one before", name(outer), name(inner));
        found.push(Considered { name, kind: Kind::Wavefront(wavefront), uncut: true });
    }
    found
}
