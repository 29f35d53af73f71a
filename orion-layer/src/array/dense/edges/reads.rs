//! The rows that workers read of an array, and where they get them from.
use super::super::DistArray;
use super::{Edge, Piece, common, contains};
use crate::array::partition::Partition;
use crate::error::Result;
use crate::view::{View, Window};
use hectare_dependence::reads::Reads;
use hectare_dsm::{Element, Rank, Worker};
use std::ops::Range;

/// From where a worker reads a part.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) part: usize,
    /// The number of the edge that has what it reads, unless it reads the part.
    pub(super) edge: Option<usize>,
    /// Its range in the dimension in which the array is cut.
    pub(super) range: Range<usize>,
    /// How many indices of it the worker reads.
    needed: usize,
}

impl<T: Element, const N: usize> DistArray<T, N> {
    /// A loop reads this array, not for the first time: what its workers on other hosts (`host_of`) read of parts will be edges, when
    /// the array is written next.
    pub(crate) fn expect_reads(&self, reads: &Reads, host_of: &[usize]) {
        let dim = self.layout.dim;
        if self.edges.is_off || !reads.single[dim] {
            return;
        }
        let mut wanted = self.edges.wanted.borrow_mut();
        for worker in 0..host_of.len() {
            let read = reads.range(worker, dim);
            let is_elsewhere = |part: &usize| host_of[self.layout.owners[*part] as usize] != host_of[worker];
            for part in self.layout.parts_of(&read).filter(is_elsewhere) {
                let range = common(&read, &self.layout.range(part));
                let is_known = |(other, known): &Piece| *other == part && contains(known, &range);
                let has_edge = self.edges.list.iter().any(|edge| is_known(&edge.piece));
                let is_whole = self.edges.whole.contains(&part);
                if !range.is_empty() && !is_whole && !has_edge && !wanted.iter().any(is_known) {
                    wanted.push((part, range));
                }
            }
        }
    }

    /// Tells `note` what goes from host to host when workers read so much: each edge or part once to each host.
    pub(crate) fn note_reads(
        &self,
        reads: &Reads,
        host_of: &[usize],
        note: &mut dyn FnMut(usize, usize, usize),
    ) {
        let dim = self.layout.dim;
        for (part, owner) in self.layout.owners.iter().enumerate() {
            let from = host_of[*owner as usize];
            let mut sent: Vec<(usize, Option<usize>)> = Vec::new();
            for worker in (0..host_of.len()).filter(|worker| host_of[*worker] != from) {
                let needed = match reads.single[dim] {
                    true => common(&reads.range(worker, dim), &self.layout.range(part)),
                    false => self.layout.range(part),
                };
                let goes = (host_of[worker], self.fresh_edge(part, &needed));
                if !needed.is_empty() && reads.boxes[worker].is_some() && !sent.contains(&goes) {
                    sent.push(goes);
                    let elements = match goes.1 {
                        Some(edge) => self.window_of(&self.edges.list[edge].piece).len(),
                        None => self.window(part).len(),
                    };
                    note(from, goes.0, elements * size_of::<T>());
                }
            }
        }
    }

    /// From where worker `me` reads each part of which it reads something.
    pub(super) fn sources(&self, me: Rank, reads: &Reads) -> impl Iterator<Item = Source> {
        let read = reads.range(me as usize, self.layout.dim);
        self.layout.parts_of(&read).filter_map(move |part| {
            let needed = common(&read, &self.layout.range(part));
            let edge = self.fresh_edge(part, &needed).filter(|_| self.layout.owners[part] != me);
            let range = match edge {
                Some(edge) => self.edges.list[edge].piece.1.clone(),
                None => self.layout.range(part),
            };
            (!needed.is_empty()).then_some(Source { part, edge, range, needed: needed.len() })
        })
    }

    /// The area of a source.
    pub(super) fn partition(&self, source: &Source) -> &Partition<T> {
        source.edge.map_or(&self.parts[source.part], |edge| &self.edges.list[edge].copy)
    }

    /// An edge that is as new as its part, and has this of it.
    fn fresh_edge(&self, part: usize, needed: &Range<usize>) -> Option<usize> {
        let stamp = Some(self.parts[part].stamp());
        let has = |edge: &Edge<T>| edge.piece.0 == part && contains(&edge.piece.1, needed);
        self.edges.list.iter().position(|edge| has(edge) && edge.stamp == stamp)
    }

    /// Whether each worker finds all that it reads of others' parts in edges, as they are now. The same on all workers.
    pub(crate) fn has_fresh_edges(&self, reads: &Reads) -> bool {
        self.reads_only_edges(reads, |part, needed| self.fresh_edge(part, needed).is_some())
    }

    /// Whether that will be so when the parts are lent the next time.
    pub(crate) fn will_have_edges(&self, reads: &Reads) -> bool {
        self.reads_only_edges(reads, |part, needed| {
            self.edges.list.iter().any(|Edge { piece, owner, .. }| {
                piece.0 == part && contains(&piece.1, needed) && *owner == self.layout.owners[part]
            })
        })
    }

    fn reads_only_edges(&self, reads: &Reads, has_edge: impl Fn(usize, &Range<usize>) -> bool) -> bool {
        let dim = self.layout.dim;
        let has_all = |worker: usize| {
            let read = reads.range(worker, dim);
            self.layout.parts_of(&read).all(|part| {
                let needed = common(&read, &self.layout.range(part));
                needed.is_empty() || self.layout.owners[part] as usize == worker || has_edge(part, &needed)
            })
        };
        (0..reads.boxes.len()).all(has_all)
    }

    /// A view of what this worker reads in a loop over several hosts: its own parts, and of others no more than what it reads.
    pub(crate) fn view_of<'a>(&'a self, worker: &'a Worker, reads: &Reads) -> Result<View<'a, T, N>> {
        let dim = self.layout.dim;
        if !reads.single[dim] {
            return self.view_on(worker, None);
        }
        self.check()?;
        // Where most is read is looked first.
        let mut sources: Vec<_> = self.sources(worker.rank(), reads).collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.needed));
        sources.iter().try_for_each(|source| self.partition(source).ask(worker))?;
        let mut parts = Vec::with_capacity(sources.len());
        for source in &sources {
            let window = Window::new(&self.shape, dim, &source.range);
            if window.len() != 0 {
                parts.push((window, &self.partition(source).read(worker)?[..window.len()]));
            }
        }
        // Nothing is put together from parts that are not all here.
        let whole = Window::new(&self.shape, 0, &(0..0));
        Ok(View::new(self.bounds(), whole, parts, &self.gathered))
    }
}
