//! A map as a loop sees it.
use super::image::look_up;
use super::loop_array::control;
use super::map::DistMap;
use super::pending::Pending;
use super::{Key, Merge};
use crate::array::Value;
use crate::context::Context;
use crate::contract::{ArrayArg, ArrayTrace, Family, KeyNotes, NoKeyView, NoKeyViewFamily, Rule};
use crate::error::Result;
use crate::panics::Missing;
use crate::site::Site;
use hectare_dsm::Worker;
use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Range;

/// A map that a body looks keys up in (`read counts` in `parallel_for!`): as it was when the pass began.
#[derive(Debug)]
pub struct MapReadView<'a, K, V> {
    name: &'a str,
    images: Vec<&'a [u8]>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> MapReadView<'_, K, V> {
    /// The value at a key.
    ///
    /// # Panics
    /// If serde cannot decode it, which ends the loop with [`Error::BodyPanicked`](crate::Error::BodyPanicked).
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        look_up::<K, V, Q>(&self.images, key).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The value at a key that has to be there.
    ///
    /// # Panics
    /// If it is not there, which ends the loop with [`Error::MissingKey`](crate::Error::MissingKey). And as [`MapReadView::get`]
    /// does.
    pub fn at<Q>(&self, key: &Q) -> V
    where
        K: Borrow<Q>,
        Q: Hash + Eq + Debug + ?Sized,
    {
        self.get(key).unwrap_or_else(|| Missing::key(self.name, key).end_body())
    }
}

/// A map to which a body contributes (`buffer counts` in `parallel_for!`).
#[derive(Debug)]
pub struct MapView<'a, K, V, M> {
    read: MapReadView<'a, K, V>,
    pending: &'a mut Pending<K, V>,
    rule: &'a M,
    cell: &'a Cell<usize>,
}

impl<K: Key, V: Value, M: Merge<V>> MapView<'_, K, V, M> {
    /// The value at a key, as it was when the pass began.
    ///
    /// # Panics
    /// As [`MapReadView::get`] does.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.read.get(key)
    }

    /// The value at a key that has to be there, as it was when the pass began.
    ///
    /// # Panics
    /// As [`MapReadView::at`] does.
    pub fn at<Q>(&self, key: &Q) -> V
    where
        K: Borrow<Q>,
        Q: Hash + Eq + Debug + ?Sized,
    {
        self.read.at(key)
    }

    /// Contributes to a key, which need not be there: merged by the map's rule when the pass ends, and with what the same
    /// cell has contributed at once.
    ///
    /// # Panics
    /// If the rule does, which ends the loop with [`Error::RulePanicked`](crate::Error::RulePanicked).
    #[inline]
    pub fn add<Q>(&mut self, key: &Q, part: M::Part)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.pending.add(self.read.name, self.cell.get() as u64, self.rule, key, part);
    }
}

/// A map passed to a loop that looks keys up ([`DistMap::look_ups`]).
#[derive(Debug)]
pub struct MapRead<'d, K: Key, V: Value, M>(&'d DistMap<K, V, M>);

/// A map passed to a loop that contributes ([`DistMap::buffer`]).
#[derive(Debug)]
pub struct MapArg<'d, K: Key, V: Value, M>(&'d mut DistMap<K, V, M>);

/// [`MapReadView`]s of maps of these keys and values.
#[derive(Debug)]
pub struct MapReadViewFamily<K, V>(PhantomData<(K, V)>);

/// [`MapView`]s of maps of these keys and values.
#[derive(Debug)]
pub struct MapViewFamily<K, V, M>(PhantomData<(K, V, M)>);

impl<K: Key, V: Value> Family for MapReadViewFamily<K, V> {
    type Of<'a> = MapReadView<'a, K, V>;
}

impl<K: Key, V: Value, M: Merge<V>> Family for MapViewFamily<K, V, M> {
    type Of<'a> = MapView<'a, K, V, M>;
}

impl<K: Key, V: Value, M: Merge<V>> DistMap<K, V, M> {
    /// For [`Context::run_loop`]: the map as one that the loop contributes to.
    pub fn buffer(&mut self) -> MapArg<'_, K, V, M> {
        MapArg(self)
    }

    /// For [`Context::run_loop`]: the map as one that the loop looks keys up in.
    pub fn look_ups(&self) -> MapRead<'_, K, V, M> {
        MapRead(self)
    }

    fn read_view<'a>(&'a self, worker: &'a Worker) -> Result<MapReadView<'a, K, V>> {
        Ok(MapReadView { name: &self.name, images: self.images.read(worker)?, of: PhantomData })
    }
}

control!(MapRead<'_, K, V, M>, [K: Key, V: Value, M: Merge<V>], false, Exact, {
    fn poison(&mut self, _cause: &str) {}
});

control!(MapArg<'_, K, V, M>, [K: Key, V: Value, M: Merge<V>], true, Collected, {
    /// A failed pass has changed nothing.
    fn poison(&mut self, _cause: &str) {
        self.0.pending.clear();
    }

    fn rule(&self) -> Option<Rule<'_>> {
        Some(Rule { type_name: std::any::type_name::<M>(), shown: None })
    }

    fn settle(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        self.0.settle(context, site)
    }

    fn unsettle(&mut self, cause: &str) {
        self.0.poisoned = Some(cause.to_owned());
    }
});

impl<K: Key, V: Value, M: Merge<V>> ArrayArg for MapRead<'_, K, V, M> {
    type View = MapReadViewFamily<K, V>;
    type Keys = MapReadViewFamily<K, V>;

    fn keys<'a>(&'a mut self, worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<MapReadView<'a, K, V>> {
        self.0.read_view(worker)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        _note: ArrayTrace<'a>,
    ) -> Result<MapReadView<'a, K, V>> {
        self.0.read_view(worker)
    }
}

impl<K: Key, V: Value, M: Merge<V>> ArrayArg for MapArg<'_, K, V, M> {
    type View = MapViewFamily<K, V, M>;
    type Keys = NoKeyViewFamily;

    fn keys<'a>(&'a mut self, _worker: &'a Worker, _notes: KeyNotes<'a>) -> Result<NoKeyView> {
        Ok(NoKeyView)
    }

    fn view<'a>(
        &'a mut self,
        worker: &'a Worker,
        _parts: Range<usize>,
        trace: ArrayTrace<'a>,
    ) -> Result<MapView<'a, K, V, M>> {
        let DistMap { name, images, pending, rule, .. } = &mut *self.0;
        let read = MapReadView { name, images: images.read(worker)?, of: PhantomData };
        Ok(MapView { read, pending, rule, cell: trace.cell() })
    }
}
