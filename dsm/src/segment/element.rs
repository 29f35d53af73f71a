//! The types of elements: plain old data, told apart by size, alignment and kind.
use std::any::TypeId;

/// What may be an element of an area: plain old data, any bytes of which are a value.
///
/// Implemented for every [`bytemuck::Pod`] type: the integers, `f32`, `f64`, arrays of them, and structs
/// without padding that derive `Pod`. NaN payloads are kept as they are.
pub trait Element: bytemuck::Pod + Send + Sync {}
impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// The type of an area's elements, as its slot stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementType {
    pub(crate) size: u32,
    pub(crate) align: u32,
    pub(crate) kind: u32,
}

const NAMES: [&str; 13] =
    ["struct", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "u128", "i128", "f32", "f64"];

impl ElementType {
    pub(crate) fn of<T: Element>() -> ElementType {
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
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = NAMES.get(self.kind as usize).unwrap_or(&"unknown");
        write!(f, "{name} (size {}, align {})", self.size, self.align)
    }
}
