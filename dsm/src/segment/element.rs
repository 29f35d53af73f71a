//! The types of elements: plain old data, told apart by size, alignment and kind.
use std::any::TypeId;

/// An element of an area: plain old data, any bytes of which are a value.
///
/// Implemented for every [`bytemuck::Pod`] type: the integers, `f32`, `f64`, arrays of them, and structs
/// without padding that derive `Pod`. NaN payloads are kept as they are.
pub trait Element: bytemuck::Pod + Send + Sync {}
impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// The type of an area's elements, as its slot stores it: what two processes, or two hosts, have to agree on.
///
/// ```
/// use hectare_dsm::ElementType;
/// let element = ElementType::of::<f32>();
/// assert_eq!(ElementType::from_parts(element.to_parts()), Some(element));
/// assert_eq!(ElementType::from_parts([3, 4, 11]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementType {
    pub(crate) size: u32,
    pub(crate) align: u32,
    pub(crate) kind: u32,
}

const NAMES: [&str; 13] =
    ["struct", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "u128", "i128", "f32", "f64"];

/// Bytes of the types of these names; 0 for those that may have any.
const SIZES: [u32; 13] = [0, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 4, 8];

impl ElementType {
    /// The type `T`.
    pub fn of<T: Element>() -> ElementType {
        let ids = [
            TypeId::of::<u8>(),
            TypeId::of::<i8>(),
            TypeId::of::<u16>(),
            TypeId::of::<i16>(),
            TypeId::of::<u32>(),
            TypeId::of::<i32>(),
            TypeId::of::<u64>(),
            TypeId::of::<i64>(),
            TypeId::of::<u128>(),
            TypeId::of::<i128>(),
            TypeId::of::<f32>(),
            TypeId::of::<f64>(),
        ];
        let kind = ids.iter().position(|id| *id == TypeId::of::<T>()).map_or(0, |index| index as u32 + 1);
        ElementType { size: size_of::<T>() as u32, align: align_of::<T>() as u32, kind }
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.size as usize
    }

    /// The type as numbers, which mean the same on every host.
    pub fn to_parts(self) -> [u32; 3] {
        [self.size, self.align, self.kind]
    }

    /// The type that [`ElementType::to_parts`] turned into these numbers; `None` if they are of no type.
    pub fn from_parts([size, align, kind]: [u32; 3]) -> Option<ElementType> {
        let is_possible = size > 0 && align.is_power_of_two() && size.is_multiple_of(align);
        let is_known = SIZES.get(kind as usize).is_some_and(|known| *known == 0 || *known == size);
        (is_possible && is_known).then_some(ElementType { size, align, kind })
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = NAMES.get(self.kind as usize).unwrap_or(&"unknown");
        write!(f, "{name} (size {}, align {})", self.size, self.align)
    }
}
