//! Maps and vectors in checkpoints: their entries in blocks, each of the worker that had them.
use super::contents::{StoredList, type_name};
use super::restore::Checkpoint;
use super::save::{CheckpointWriter, encode, once};
use crate::array::Value;
use crate::collections::{DistMap, DistVec, Key, Merge};
use crate::context::Context;
use crate::error::Result;
use crate::panics::caught;
use crate::site::Site;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

impl CheckpointWriter<'_, '_> {
    /// Stores a map under a name; its rule is a part of the program, and not stored. Collective.
    ///
    /// ```
    /// use hectare_orion::collections::Sum;
    /// # let path = std::env::temp_dir().join(format!("hectare-doc-map-{}.ckpt", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     let mut counts = w.dist_map::<String, u64, _>(Sum)?;
    ///     counts.extend(w, [("a word".to_owned(), 1)])?;
    ///     let mut found = w.dist_vec::<u32>()?;
    ///     found.extend(w, [7])?;
    ///     w.save_checkpoint(&path, |c| {
    ///         c.map("counts", &counts)?;
    ///         c.vector("found", &found)
    ///     })
    /// })?;
    /// hectare_orion::run(3, |w| {
    ///     let c = w.open_checkpoint(&path)?.expect("the file was just written");
    ///     let counts = c.map::<String, u64, _>(w, "counts", Sum)?;
    ///     assert_eq!(counts.get(w, "a word")?, Some(2));
    ///     assert_eq!(c.vector::<u32>(w, "found")?.to_vec(w)?, [7, 7]);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Message`](crate::Error::Message) for keys and values that serde cannot encode, and those of
    /// [`CheckpointWriter::array`].
    #[track_caller]
    pub fn map<K: Key, V: Value, M: Merge<V>>(&mut self, name: &str, map: &DistMap<K, V, M>) -> Result<()> {
        let site = Site::here();
        let at = (name, self.context.rank());
        let mine = once(self.contents.has(name), "map", name).and_then(|()| {
            map.check()?;
            caught(at, || encode(map.local().iter(), map.len()), || "an entry".into())
        });
        let (blocks, item) = (self.blocks(site, mine)?, type_name::<(K, V)>());
        let stored = StoredList { item, len: map.len() as u64, blocks };
        self.contents.maps.insert(name.into(), stored);
        Ok(())
    }

    /// Stores a vector under a name. Collective.
    ///
    /// # Errors
    /// Those of [`CheckpointWriter::map`].
    #[track_caller]
    pub fn vector<T: Value>(&mut self, name: &str, vector: &DistVec<T>) -> Result<()> {
        let site = Site::here();
        let (rank, size) = (self.context.rank(), self.context.size());
        let mine = once(self.contents.has(name), "vector", name).and_then(|()| {
            vector.check()?;
            let encode = || encode(vector.indexed(rank as usize, size), vector.len());
            caught((name, rank), encode, || "an element".into())
        });
        let (blocks, item) = (self.blocks(site, mine)?, type_name::<T>());
        let stored = StoredList { item, len: vector.len() as u64, blocks };
        self.contents.vectors.insert(name.into(), stored);
        Ok(())
    }
}

impl Checkpoint {
    /// A map by its name, spread over the workers of this program, however many wrote it; `rule` is for what is
    /// contributed from now on. Collective.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if there is none of this name, one of other keys or values, or a damaged
    /// one, [`Error::Io`](crate::Error::Io): the same error on every worker. And those of [`Context::dist_map`].
    #[track_caller]
    pub fn map<K: Key, V: Value, M: Merge<V>>(
        &self,
        context: &mut Context<'_>,
        name: &str,
        rule: M,
    ) -> Result<DistMap<K, V, M>> {
        let site = Site::here();
        let maps = &self.contents.maps;
        let mine = self.share::<(K, V)>(context, site, ("map", name), &type_name::<(K, V)>(), maps);
        let map = DistMap::restore(context, site, (name, rule), mine)?;
        match self.is_whole(("map", name), &self.contents.maps, map.len()) {
            Ok(()) => Ok(map),
            // All workers have counted the same.
            Err(error) => map.delete(context).and(Err(error)),
        }
    }

    /// A vector by its name, spread over the workers of this program, however many wrote it. Collective.
    ///
    /// # Errors
    /// Those of [`Checkpoint::map`].
    #[track_caller]
    pub fn vector<T: Value>(&self, context: &mut Context<'_>, name: &str) -> Result<DistVec<T>> {
        let site = Site::here();
        let vectors = &self.contents.vectors;
        let mine = self.share::<(u64, T)>(context, site, ("vector", name), &type_name::<T>(), vectors);
        let vector = DistVec::restore(context, site, name, mine)?;
        match self.is_whole(("vector", name), &self.contents.vectors, vector.len()) {
            Ok(()) => Ok(vector),
            Err(error) => vector.delete(context).and(Err(error)),
        }
    }

    /// The items of this worker's share of the blocks. Collective, unless every worker has every file; without what all know.
    fn share<I: DeserializeOwned>(
        &self,
        context: &mut Context<'_>,
        site: Site,
        (kind, name): (&str, &str),
        asked: &str,
        lists: &BTreeMap<String, StoredList>,
    ) -> Result<Vec<I>> {
        let stored = self.look_up(lists, kind, name)?;
        if stored.item != asked {
            let found = &stored.item;
            return Err(self.wrong(format!("{kind} {name:?} has entries of {found}, not of {asked}")));
        }
        let (me, all) = (context.rank() as usize, context.size());
        let share = stored.blocks.len() * me / all..stored.blocks.len() * (me + 1) / all;
        let blocks = &stored.blocks[share];
        let bytes = self.block_bytes(context, site, (kind, name), blocks)?;
        let read = || self.read_blocks((kind, name), blocks, &bytes);
        caught((name, context.rank()), read, || "an entry".into())
    }

    fn is_whole(
        &self,
        (kind, name): (&str, &str),
        lists: &BTreeMap<String, StoredList>,
        found: usize,
    ) -> Result<()> {
        match lists.get(name).is_some_and(|stored| stored.len == found as u64) {
            true => Ok(()),
            false => Err(self.wrong(format!("{kind} {name:?} is damaged: it has {found} entries"))),
        }
    }
}
