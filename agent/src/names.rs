//! Conversions between the types of the core and those of the protocol between hosts.
use hectare_dsm as dsm;
use hectare_dsm::agent::{AreaDescription, LineSet};
use hectare_net::{Description, ElementType, LINE, Version};

// Lines go from one to the other by their numbers.
const _: () = assert!(LINE as usize == LineSet::LINE_BYTES);

pub(crate) fn version(version: dsm::Version) -> Version {
    Version { term: version.term, counter: version.counter }
}

pub(crate) fn version_here(version: Version) -> dsm::Version {
    dsm::Version { term: version.term, counter: version.counter }
}

/// The description of an area for other hosts.
pub(crate) fn description(area: &AreaDescription) -> Description {
    let [size, align, kind] = area.element.to_parts();
    let bytes = (area.len * area.element.size()) as u64;
    // A row that is longer than 2^32 elements is longer than an area of another host can be.
    let row = u32::try_from(area.row).unwrap_or(1);
    let group = area.group.clone().unwrap_or_default();
    let element = ElementType { kind, size, align };
    Description { name: area.name.clone(), group, element, bytes, row, on_demand: area.on_demand }
}

/// The type and the number of elements; none if they are of no area.
pub(crate) fn elements(description: &Description) -> Option<(dsm::ElementType, usize)> {
    let ElementType { kind, size, align } = description.element;
    let element = dsm::ElementType::from_parts([size, align, kind])?;
    let bytes = usize::try_from(description.bytes).ok()?;
    bytes.is_multiple_of(element.size()).then(|| (element, bytes / element.size()))
}
