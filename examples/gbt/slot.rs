//! Numbers of histogram slots, as small as they can be: rows are read over and over.
use hectare::Element;

/// Slots of a row are padded to a multiple of this, so that inner loops have no remainder.
pub(crate) const PAD: usize = 8;

/// The number of a slot.
pub(crate) trait Slot: Element + PartialOrd {
    /// The greatest number.
    const MOST: usize;
    /// The numbers of its own there are, if a table of as many is small: then no access to one needs a check.
    const ALL: Option<usize>;

    fn new(slot: usize) -> Self;
    fn at(self) -> usize;
    /// Whether it is one of the `count` slots from `first` on.
    fn is_within(self, first: Self, count: Self) -> bool;
}

macro_rules! slots {
    ($($of:ty: $all:expr;)*) => {$(
        impl Slot for $of {
            const MOST: usize = <$of>::MAX as usize;
            const ALL: Option<usize> = $all;

            #[inline(always)]
            fn new(slot: usize) -> $of {
                slot as $of
            }

            #[inline(always)]
            fn at(self) -> usize {
                self as usize
            }

            #[inline(always)]
            fn is_within(self, first: $of, count: $of) -> bool {
                self.wrapping_sub(first) < count
            }
        }
    )*};
}
slots! { u8: Some(1 << 8); u16: None; u32: None; }
