//! Collections as arrays of a loop.

/// About what a look-up touches.
pub(super) const BYTES: usize = 128;

/// What the executor does with any of them: nothing is handed from worker to worker.
macro_rules! control {
    ($arg:ty, [$($of:tt)*], $is_written:literal, $treatment:ident, { $($own:tt)* }) => {
        impl<$($of)*> $crate::execute::Control for $arg {
            fn describe(&self, name: &str) -> hectare_dependence::loop_nest::NamedArray {
                hectare_dependence::loop_nest::NamedArray { name: name.into(), shape: vec![1], element_bytes: $crate::collections::control::BYTES }
            }

            fn number(&self) -> u64 {
                self.0.number
            }

            fn version(&self) -> u64 {
                self.0.images.version
            }

            fn is_written(&self) -> bool {
                $is_written
            }

            fn treatment(&self) -> $crate::relax::Treatment {
                $crate::relax::Treatment::$treatment
            }

            fn check(&self) -> $crate::Result<()> {
                self.0.check()
            }

            fn layout(&self) -> &$crate::array::Layout {
                &self.0.layout
            }

            fn rearrange(&mut self, _context: &mut $crate::context::Context<'_>, _site: $crate::context::Site, _to: &$crate::array::Layout) -> $crate::Result<()> {
                Ok(())
            }

            fn recall(&mut self, _worker: &mut hectare_dsm::Worker) -> $crate::Result<()> {
                Ok(())
            }

            fn finish_recall(&mut self, _worker: &mut hectare_dsm::Worker) -> $crate::Result<()> {
                Ok(())
            }

            fn take(&mut self, _worker: &mut hectare_dsm::Worker, _part: usize) -> $crate::Result<()> {
                Ok(())
            }

            fn give(&mut self, _worker: &hectare_dsm::Worker, _part: usize, _to: hectare_dsm::Rank) -> $crate::Result<()> {
                Ok(())
            }

            fn lend(&mut self, _worker: &hectare_dsm::Worker) -> $crate::Result<()> {
                Ok(())
            }

            fn set_owners(&mut self, _owners: &[hectare_dsm::Rank]) {}

            $($own)*
        }
    };
}

pub(super) use control;
