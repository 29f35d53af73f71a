//! A vector as a loop sees it.
use super::loop_array::control;
use super::vector::{DistVec, Pushed, element};
use crate::array::Value;
use crate::context::Context;
use crate::contract::{ArrayArg, ArrayTrace, Family, KeyNotes, NoKeyView, NoKeyViewFamily};
use crate::error::Result;
use crate::panics::Missing;
use crate::site::Site;
use hectare_dsm::Worker;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;

/// A vector that a body reads (`read found` in `parallel_for!`): as it was when the pass began.
#[derive(Debug)]
pub struct VecReadView<'a, T> {
    name: &'a str,
    images: Vec<&'a [u8]>,
    of: PhantomData<fn() -> T>,
}

impl<T: Value> VecReadView<'_, T> {
    /// An element; `None` beyond the end.
    ///
    /// # Panics
    /// If serde cannot decode it, which ends the loop with [`Error::BodyPanicked`](crate::Error::BodyPanicked).
    pub fn get(&self, index: usize) -> Option<T> {
        element(&self.images, index).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// An element that has to be there.
    ///
    /// # Panics
    /// If it is beyond the end, which ends the loop with [`Error::MissingKey`](crate::Error::MissingKey). And as
    /// [`VecReadView::get`] does.
    pub fn at(&self, index: usize) -> T {
        self.get(index).unwrap_or_else(|| Missing::element(self.name, index).end_body())
    }
}

/// A vector that a body pushes to (`buffer found` in `parallel_for!`).
#[derive(Debug)]
pub struct VecView<'a, T> {
    read: VecReadView<'a, T>,
    pushed: &'a mut Pushed<T>,
    cell: &'a Cell<usize>,
}

impl<T: Value> VecView<'_, T> {
    /// An element, as it was when the pass began; `None` beyond the end that there was then.
    ///
    /// # Panics
    /// As [`VecReadView::get`] does.
    pub fn get(&self, index: usize) -> Option<T> {
        self.read.get(index)
    }

    /// An element that has to be there, as it was when the pass began.
    ///
    /// # Panics
    /// As [`VecReadView::at`] does.
    pub fn at(&self, index: usize) -> T {
        self.read.at(index)
    }

    /// Appends an element when the pass ends.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.pushed.push(self.cell.get() as u64, element);
    }
}

/// A vector passed to a loop that reads it ([`DistVec::reads`]).
#[derive(Debug)]
pub struct VecRead<'d, T: Value>(&'d DistVec<T>);

/// A vector passed to a loop that pushes to it ([`DistVec::buffer`]).
#[derive(Debug)]
pub struct VecArg<'d, T: Value>(&'d mut DistVec<T>);

/// [`VecReadView`]s of vectors of these elements.
#[derive(Debug)]
pub struct VecReadViewFamily<T>(PhantomData<T>);

/// [`VecView`]s of vectors of these elements.
#[derive(Debug)]
pub struct VecViewFamily<T>(PhantomData<T>);

impl<T: Value> Family for VecReadViewFamily<T> {
    type Of<'a> = VecReadView<'a, T>;
}

impl<T: Value> Family for VecViewFamily<T> {
    type Of<'a> = VecView<'a, T>;
}

impl<T: Value> DistVec<T> {
    /// For [`Context::run_loop`]: the vector as one that the loop pushes to.
    pub fn buffer(&mut self) -> VecArg<'_, T> {
        VecArg(self)
    }

    /// For [`Context::run_loop`]: the vector as one that the loop reads.
    pub fn reads(&self) -> VecRead<'_, T> {
        VecRead(self)
    }
}

control!(VecRead<'_, T>, [T: Value], false, Exact, {
    fn poison(&mut self, _cause: &str) {}
});

control!(VecArg<'_, T>, [T: Value], true, Collected, {
    /// A failed pass has changed nothing.
    fn poison(&mut self, _cause: &str) {
        self.0.pushed.clear();
    }

    fn settle(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        self.0.settle(context, site)
    }

    fn unsettle(&mut self, cause: &str) {
        self.0.poisoned = Some(cause.to_owned());
    }
});

impl<T: Value> ArrayArg for VecRead<'_, T> {
    type View = VecReadViewFamily<T>;
    type Keys = VecReadViewFamily<T>;

    fn keys<'a>(&'a mut self, worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<VecReadView<'a, T>> {
        let DistVec { name, images, .. } = self.0;
        Ok(VecReadView { name, images: images.read(worker)?, of: PhantomData })
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        _note: ArrayTrace<'a>,
    ) -> Result<VecReadView<'a, T>> {
        self.keys(worker, KeyNotes::NONE)
    }
}

impl<T: Value> ArrayArg for VecArg<'_, T> {
    type View = VecViewFamily<T>;
    type Keys = NoKeyViewFamily;

    fn keys<'a>(&'a mut self, _worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<NoKeyView> {
        Ok(NoKeyView)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<VecView<'a, T>> {
        let DistVec { name, images, pushed, .. } = &mut *self.0;
        let read = VecReadView { name, images: images.read(worker)?, of: PhantomData };
        Ok(VecView { read, pushed, cell: trace.cell() })
    }
}
