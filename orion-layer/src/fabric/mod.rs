//! How the workers of a program reach each other.
//!
//! All that a [`Context`](crate::Context) says to other workers goes through a [`Fabric`]: frames that all read, parcels for
//! one worker each, and an exit notice. Who is behind it, and where, is known to its implementation alone: [`SharedMemory`], of
//! one host or of several. Elements of arrays take no part in this: they lie in areas of the runtime core, which go to other
//! hosts by themselves; what is different for them there is in [`shown`].
mod made;
mod shared_memory;
pub(crate) mod shown;
pub(crate) mod watched;

pub(crate) use self::made::with_rest;
pub(crate) use self::shared_memory::{
    Frames, SharedMemory, attach_to, attach_to_all, is_gone, name_of_other,
};

use crate::error::Result;
use hectare_dsm::Rank;
use std::fmt::Debug;

/// Puts a message into the memory that it is sent from. Called once.
pub(crate) type Write<'a> = &'a mut dyn FnMut(&mut [u8]);

/// How long the parcels are that a worker offers under one name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parcels<'a> {
    /// One for each worker, by rank.
    OneForEach(&'a [usize]),
    /// One that all fetch.
    OneForAll(usize),
}

/// Which parcel of a sender is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parcel {
    /// That for this worker.
    Mine,
    /// That for all.
    ForAll,
}

/// The connection of one worker to the others of its program.
pub(crate) trait Fabric: Debug {
    /// The number of this worker.
    fn rank(&self) -> Rank;

    /// How many workers there are.
    fn size(&self) -> usize;

    /// Posts a frame of `len` bytes to all, and waits until everybody has posted one.
    ///
    /// # Errors
    /// When the others do not come.
    fn post(&mut self, len: usize, write: Write<'_>) -> Result<()>;

    /// The frame that worker `rank` posted last, and whatever is behind it; until the next [`Fabric::post`].
    ///
    /// # Errors
    /// When it cannot be reached.
    fn frame(&self, rank: usize) -> Result<&[u8]>;

    /// Leaves an exit notice for who still waits for this worker, and waits for nobody. Nothing is posted after it.
    ///
    /// # Errors
    /// When it cannot be left.
    fn leave(&mut self, len: usize, write: Write<'_>) -> Result<()>;

    /// Waits a little for the notice of worker `rank`, which has posted no frame where it should have, if notices take time.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn await_notice(&mut self, rank: usize) -> Result<()>;

    /// The notice that worker `rank` has left for others to read, and whatever is behind it; `None` while it has not.
    fn left_by(&self, rank: usize) -> Option<&[u8]>;

    /// Whether worker `rank` lives, as far as one can tell.
    fn is_alive(&self, rank: usize) -> bool;

    /// The name of the host of worker `rank`, if it is not this worker's host.
    fn other_host(&self, rank: usize) -> Option<String>;

    /// Offers parcels, under a name that this worker has not offered before it was withdrawn; `write` gets the bytes of all of
    /// them, one after the other. They can be fetched once all workers have met.
    ///
    /// # Errors
    /// When there is no memory for them.
    fn offer(&mut self, name: &str, parcels: Parcels<'_>, write: Write<'_>) -> Result<()>;

    /// Calls `visit` with a parcel of those that worker `rank` offers under this name.
    ///
    /// # Errors
    /// When it offers none; that of `visit`.
    fn fetch(
        &mut self,
        name: &str,
        rank: usize,
        which: Parcel,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;

    /// Gives the memory of this worker's parcels back, when nobody fetches any more, if it has offered some.
    ///
    /// # Errors
    /// When it cannot be given back.
    fn withdraw(&mut self, name: &str) -> Result<()>;
}
