//! Collections as arrays of a loop.

/// The approximate number of bytes that a look-up touches.
pub(super) const BYTES: usize = 128;

/// The executor's interface, the same for all of them: nothing is handed from worker to worker.
macro_rules! control {
    ($arg:ty, [$($of:tt)*], $is_written:literal, $treatment:ident, { $($own:tt)* }) => {
        impl<$($of)*> $crate::contract::LoopArray for $arg {
            fn describe(&self, name: &str) -> hectare_dependence::loop_nest::NamedArray {
                hectare_dependence::loop_nest::NamedArray { name: name.into(), shape: vec![1], element_bytes: $crate::collections::loop_array::BYTES }
            }

            fn number(&self) -> u64 {
                self.0.number.get()
            }

            fn version(&self) -> u64 {
                self.0.images.version
            }

            fn is_written(&self) -> bool {
                $is_written
            }

            fn treatment(&self) -> $crate::contract::Treatment {
                $crate::contract::Treatment::$treatment
            }

            fn check(&self) -> $crate::Result<()> {
                self.0.check()
            }

            fn layout(&self) -> &$crate::contract::Layout {
                &self.0.layout
            }

            $($own)*
        }
    };
}

pub(super) use control;
