//! The arrays of a loop: what the executor does with them, whatever their types.
use super::{Control, Note, Notes};
use crate::array::{DistArray, Layout};
use crate::context::{Context, Site};
use crate::error::Result;
use crate::serve::{Unseen, Unseens};
use crate::view::{View, ViewMut};
use hectare_dependence::loop_nest::NamedArray;
use hectare_dsm::{Element, Rank, Worker};
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// The type of a family for one lifetime.
pub type Of<'a, F> = <F as Family>::Of<'a>;

/// A type for every lifetime. A body is generic over the lifetime of what it is given, and this names that type
/// without a bound on the lifetime of the array that it comes from.
pub trait Family {
    /// The type.
    type Of<'a>;
}

/// [`View`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct Reads<T, const N: usize>(PhantomData<T>);
/// [`ViewMut`]s of arrays of these elements and dimensions.
#[derive(Debug)]
pub struct Writes<T, const N: usize>(PhantomData<T>);

impl<T: Element, const N: usize> Family for Reads<T, N> {
    type Of<'a> = View<'a, T, N>;
}

impl<T: Element, const N: usize> Family for Writes<T, N> {
    type Of<'a> = ViewMut<'a, T, N>;
}

/// An array as it is passed to a loop: `&DistArray` to read it, `&mut DistArray` to write it.
pub trait ArrayArg: Control {
    /// What the body sees.
    type View: Family;
    /// What a slice of the body sees, which says before the body runs which keys of served arrays it uses.
    type Keys: Family;

    /// Makes what a slice sees.
    ///
    /// # Errors
    /// Those of [`ArrayArg::view`].
    fn keys<'a>(&'a mut self, worker: &'a Worker) -> Result<Of<'a, Self::Keys>>;

    /// Makes the view of these parts. A view that notes what is touched is of one part.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core) if this worker does not hold them.
    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        note: Note<'a>,
    ) -> Result<Of<'a, Self::View>>;
}

fn describe<T: Element, const N: usize>(array: &DistArray<T, N>, name: &str) -> NamedArray {
    NamedArray { name: name.into(), shape: array.shape().to_vec(), element_bytes: size_of::<T>() }
}

impl<T: Element, const N: usize> Control for &DistArray<T, N> {
    fn describe(&self, name: &str) -> NamedArray {
        describe(self, name)
    }

    fn number(&self) -> u64 {
        DistArray::number(self)
    }

    fn is_written(&self) -> bool {
        false
    }

    fn version(&self) -> u64 {
        self.changes()
    }

    fn check(&self) -> Result<()> {
        DistArray::check(self)
    }

    fn layout(&self) -> &Layout {
        DistArray::layout(self)
    }

    fn rearrange(&mut self, _context: &mut Context<'_>, _site: Site, _to: &Layout) -> Result<()> {
        Ok(())
    }

    fn recall(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }

    fn finish_recall(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }

    fn take(&mut self, _worker: &mut Worker, _part: usize) -> Result<()> {
        Ok(())
    }

    fn give(&mut self, _worker: &Worker, _part: usize, _to: Rank) -> Result<()> {
        Ok(())
    }

    fn lend(&mut self, _worker: &Worker) -> Result<()> {
        Ok(())
    }

    fn set_owners(&mut self, _owners: &[Rank]) {}

    fn poison(&mut self, _cause: &str) {}
}

impl<T: Element, const N: usize> ArrayArg for &DistArray<T, N> {
    type View = Reads<T, N>;
    type Keys = Reads<T, N>;

    fn keys<'a>(&'a mut self, worker: &'a Worker) -> Result<View<'a, T, N>> {
        self.view_on(worker, None)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        note: Note<'a>,
    ) -> Result<View<'a, T, N>> {
        self.view_on(worker, note.recorder())
    }
}

impl<T: Element, const N: usize> Control for &mut DistArray<T, N> {
    fn describe(&self, name: &str) -> NamedArray {
        describe(self, name)
    }

    fn number(&self) -> u64 {
        DistArray::number(self)
    }

    fn is_written(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        DistArray::check(self)
    }

    fn layout(&self) -> &Layout {
        DistArray::layout(self)
    }

    fn rearrange(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        DistArray::rearrange(self, context, site, to)
    }

    fn recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.recall(worker))
    }

    fn finish_recall(&mut self, worker: &mut Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.finish_recall(worker))
    }

    fn take(&mut self, worker: &mut Worker, part: usize) -> Result<()> {
        self.partitions()[part].take(worker)
    }

    fn take_within(&mut self, worker: &mut Worker, part: usize, limit: Duration) -> Result<bool> {
        self.partitions()[part].take_within(worker, limit)
    }

    fn give(&mut self, worker: &Worker, part: usize, to: Rank) -> Result<()> {
        self.partitions()[part].give(worker, to)
    }

    fn lend(&mut self, worker: &Worker) -> Result<()> {
        self.partitions().iter_mut().try_for_each(|partition| partition.lend(worker))
    }

    fn set_owners(&mut self, owners: &[Rank]) {
        DistArray::set_owners(self, owners);
    }

    fn poison(&mut self, cause: &str) {
        self.partitions().iter_mut().for_each(|partition| partition.abandon());
        DistArray::poison(self, cause);
    }
}

impl<T: Element, const N: usize> ArrayArg for &mut DistArray<T, N> {
    type View = Writes<T, N>;
    type Keys = Unseens;

    fn keys<'a>(&'a mut self, _worker: &'a Worker) -> Result<Unseen> {
        Ok(Unseen)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: Range<usize>,
        note: Note<'a>,
    ) -> Result<ViewMut<'a, T, N>> {
        self.view_mut_on(worker, parts, note.recorder())
    }
}

/// The arrays of one loop: a tuple of up to eight.
pub trait Arrays {
    /// What the body sees of them.
    type Views: Family;
    /// What a slice of the body sees of them.
    type Keys: Family;

    /// Makes what a slice sees.
    ///
    /// # Errors
    /// Those of [`ArrayArg::view`].
    fn keys<'a>(&'a mut self, worker: &'a Worker) -> Result<Of<'a, Self::Keys>>;

    /// Makes the views; `parts` says which parts of each.
    ///
    /// # Errors
    /// Those of [`ArrayArg::view`].
    fn views<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: &[Range<usize>],
        notes: Notes<'a>,
    ) -> Result<Of<'a, Self::Views>>;

    /// Each array, in order.
    fn each(&mut self) -> Vec<&mut dyn Control>;

    /// The numbers of the arrays, and which are written, for the key of a plan.
    fn numbers(&self) -> Vec<(u64, bool)>;
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => {$(
        impl<$($name: Family),*> Family for ($($name,)*) {
            type Of<'a> = ($($name::Of<'a>,)*);
        }

        impl<$($name: ArrayArg),*> Arrays for ($($name,)*) {
            type Views = ($($name::View,)*);
            type Keys = ($($name::Keys,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn keys<'a>(&'a mut self, worker: &'a Worker) -> Result<Of<'a, Self::Keys>> {
                Ok(($(self.$index.keys(worker)?,)*))
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn views<'a>(
                &'a mut self,
                worker: &'a Worker,
                parts: &[Range<usize>],
                notes: Notes<'a>,
            ) -> Result<Of<'a, Self::Views>> {
                Ok(($(self.$index.view(worker, parts[$index].clone(), notes.of($index))?,)*))
            }

            fn each(&mut self) -> Vec<&mut dyn Control> {
                vec![$(&mut self.$index as &mut dyn Control),*]
            }

            fn numbers(&self) -> Vec<(u64, bool)> {
                vec![$((self.$index.number(), self.$index.is_written())),*]
            }
        }
    )*};
}
tuples! {
    () (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5) (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
