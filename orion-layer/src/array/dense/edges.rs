//! What workers of other hosts read of the parts of a dense array, in areas of their own: it goes to these hosts without the rest.
//!
//! On several hosts, a part that was written goes whole to each host whose workers read any of it. Loops over neighbours (stencils)
//! read the first and last rows of it. So a loop that reads an array again tells it which rows workers of other hosts read of each
//! part ([`DistArray::expect_reads`]). The next loop that writes the array makes areas for these rows, its *edges*
//! ([`DistArray::meet_edges`]), and after each pass that writes it, who owns a part copies them there ([`DistArray::lend_all`]).
//! All of this follows from plans, which are the same on all workers, so nobody has to be told. An edge counts while the stamp of its part is
//! what it was when the edge was copied; else readers take the part, which is always right.
use super::DistArray;
use crate::array::partition::{Hold, Partition};
use crate::context::{Context, Outcome};
use crate::contract::Layout;
use crate::error::Result;
use crate::fabric::shown::Shown;
use crate::site::Site;
use crate::view::{PartBounds, View, ViewMut, Window, copy_box};
use hectare_dependence::reads::Reads;
use hectare_dsm::tasks::Patches;
use hectare_dsm::{Element, Rank, Worker};
use std::cell::RefCell;
use std::ops::Range;

/// Some of the indices that a part has in the dimension in which the array is cut.
type Piece = (usize, Range<usize>);

/// The edges of an array.
#[derive(Debug)]
pub(super) struct Edges<T: Element> {
    list: Vec<Edge<T>>,
    /// What loops read that no edge has, and parts of which so much is read that they go whole.
    wanted: RefCell<Vec<Piece>>,
    whole: Vec<usize>,
    /// How often some were made: names are not used twice.
    made: u64,
    /// Parts change their owners, so edges would have to.
    is_off: bool,
    /// Of the pass that is under way, if it writes the array: what this worker reads beyond its own parts.
    ghosts: Vec<Ghost>,
}

/// Where what lies beyond this worker's parts was fetched from, and what it is.
#[derive(Debug)]
struct Ghost {
    range: Range<usize>,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Edge(usize),
    Part(usize),
}

/// A copy of a piece of a part.
#[derive(Debug)]
struct Edge<T: Element> {
    piece: Piece,
    owner: Rank,
    copy: Partition<T>,
    /// The stamp of the part when it was copied.
    stamp: Option<u64>,
}

impl<T: Element> Edges<T> {
    pub(super) const fn new() -> Edges<T> {
        Edges {
            list: Vec::new(),
            wanted: RefCell::new(Vec::new()),
            whole: Vec::new(),
            made: 0,
            is_off: false,
            ghosts: Vec::new(),
        }
    }

    /// Gives their memory back; of an array that is cut anew, or deleted.
    pub(super) fn delete(&mut self, worker: &mut Worker) -> Result<()> {
        self.wanted.borrow_mut().clear();
        self.whole.clear();
        self.list.drain(..).try_for_each(|edge| edge.copy.delete(worker))
    }
}

impl<T: Element, const N: usize> DistArray<T, N> {
    fn window_of(&self, (_, range): &Piece) -> Window<N> {
        Window::new(&self.shape, self.layout.dim, range)
    }

    /// A loop reads this array, not for the first time: what its workers on other hosts (`host_of`) read of parts will be edges, when
    /// the array is written next.
    pub(crate) fn expect_reads(&self, reads: &Reads, host_of: &[usize]) {
        let dim = self.layout.dim;
        if self.edges.is_off || !reads.single[dim] {
            return;
        }
        let mut wanted = self.edges.wanted.borrow_mut();
        for (part, owner) in self.layout.owners.iter().enumerate() {
            let elsewhere = (0..host_of.len()).filter(|worker| host_of[*worker] != host_of[*owner as usize]);
            for worker in elsewhere {
                let range = common(&reads.range(worker, dim), &self.layout.range(part));
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

    /// Makes the edges that loops have asked for, of an array that is written next. Collective, and the same on all workers.
    pub(crate) fn meet_edges(&mut self, context: &mut Context<'_>, site: Site) -> Result<()> {
        if self.edges.is_off {
            return Ok(());
        }
        if self.edges.list.iter().any(|edge| edge.owner != self.layout.owners[edge.piece.0]) {
            // Whoever is not here yet may still read them.
            context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))?;
            self.edges.is_off = true;
            return self.edges.delete(context.fabric.worker);
        }
        let wanted = self.edges.wanted.take();
        if wanted.is_empty() {
            return Ok(());
        }
        let known = self.edges.list.iter().map(|edge| edge.piece.clone());
        let (pieces, whole) = chosen(known.chain(wanted).collect(), &self.layout);
        self.edges.whole.extend(whole);
        let (kept, dropped) =
            std::mem::take(&mut self.edges.list).into_iter().partition(|edge| pieces.contains(&edge.piece));
        self.edges.list = kept;
        let is_new = |piece: &Piece| self.edges.list.iter().all(|edge| edge.piece != *piece);
        let fresh: Vec<Piece> = pieces.into_iter().filter(is_new).collect();
        self.edges.made += 1;
        let mut mine = Vec::new();
        let made = self.make_edges(context.fabric.worker, &fresh, &mut mine);
        if let Err(error) = context.agree_on_same(site, made) {
            mine.into_iter().try_for_each(|(_, hold)| hold.delete(context.fabric.worker))?;
            return Err(error);
        }
        // All have met since they read these last.
        dropped.into_iter().try_for_each(|edge| edge.copy.delete(context.fabric.worker))?;
        let owners = fresh.iter().map(|(part, _)| self.layout.owners[*part]).collect();
        let layout = Layout { dim: self.layout.dim, bounds: Vec::new(), owners };
        let copies =
            Partition::attach_all(context.fabric.worker, &layout, mine, |edge| self.edge_name(edge))?;
        let made = fresh.into_iter().zip(copies).zip(layout.owners);
        self.edges.list.extend(made.map(|((piece, copy), owner)| Edge { piece, owner, copy, stamp: None }));
        Ok(())
    }

    fn edge_name(&self, edge: usize) -> String {
        format!("orion/{}/{}/edges/{}/{edge}", self.number, self.generation, self.edges.made)
    }

    /// Those of them that are pieces of parts of this worker.
    fn make_edges(
        &self,
        worker: &mut Worker,
        pieces: &[Piece],
        holds: &mut Vec<(usize, Hold<T>)>,
    ) -> Result<()> {
        let me = worker.rank();
        for (edge, piece) in
            pieces.iter().enumerate().filter(|(_, (part, _))| self.layout.owners[*part] == me)
        {
            let made = Partition::create(worker, &self.edge_name(edge), &self.window_of(piece));
            let made = made
                .map_err(|error| error.of_array(&self.name, format_args!("an edge of part {}", piece.0)))?;
            holds.push((edge, Hold::Shown(Shown::new(made, worker, true)?)));
        }
        Ok(())
    }

    /// Lets everybody read the parts that this worker holds, after all have written theirs, and copies what others read of them
    /// to the edges.
    pub(crate) fn lend_all(&mut self, worker: &Worker) -> Result<()> {
        self.parts.iter_mut().try_for_each(|partition| partition.lend(worker))?;
        let mut edges = std::mem::take(&mut self.edges.list);
        let copied = edges.iter_mut().try_for_each(|edge| self.copy_edge(worker, edge));
        self.edges.list = edges;
        copied
    }

    fn copy_edge(&self, worker: &Worker, edge: &mut Edge<T>) -> Result<()> {
        let part = edge.piece.0;
        if edge.owner == self.layout.owners[part] {
            let (from, to) = (self.window(part), self.window_of(&edge.piece));
            let elements =
                (edge.owner == worker.rank()).then(|| self.parts[part].read(worker)).transpose()?;
            edge.copy.rewrite(worker, |copy| {
                elements.into_iter().for_each(|elements| copy_box(&from, elements, &to, copy));
            })?;
            edge.stamp = Some(self.parts[part].stamp());
        }
        Ok(())
    }

    /// Fetches what this worker reads beyond its own parts, in a loop that is about to write the array: before anybody writes.
    pub(crate) fn fetch_ghosts(&mut self, worker: &Worker, reads: &Reads) -> Result<()> {
        let me = worker.rank();
        let read = reads.range(me as usize, self.layout.dim);
        let mut ghosts = Vec::new();
        for part in (0..self.layout.parts()).filter(|part| self.layout.owners[*part] != me) {
            let needed = common(&read, &self.layout.range(part));
            if !needed.is_empty() {
                ghosts.push(match self.fresh_edge(part, &needed) {
                    Some(edge) => {
                        Ghost { range: self.edges.list[edge].piece.1.clone(), source: Source::Edge(edge) }
                    }
                    None => Ghost { range: self.layout.range(part), source: Source::Part(part) },
                });
            }
        }
        let source = |ghost: &Ghost| match ghost.source {
            Source::Edge(edge) => &self.edges.list[edge].copy,
            Source::Part(part) => &self.parts[part],
        };
        ghosts.iter().try_for_each(|ghost| source(ghost).ask(worker))?;
        ghosts.iter().try_for_each(|ghost| source(ghost).read(worker).map(drop))?;
        self.edges.ghosts = ghosts;
        Ok(())
    }

    /// A view of the parts `own`, which this worker holds, and of what it fetched of others before the pass.
    pub(crate) fn view_with_ghosts<'a>(
        &'a mut self,
        worker: &'a Worker,
        own: Range<usize>,
    ) -> Result<ViewMut<'a, T, N>> {
        let DistArray { layout, shape, parts, edges, name, .. } = self;
        let dim = layout.dim;
        let box_of = |range: Range<usize>| {
            let mut ranges = shape.map(|extent| 0..extent);
            ranges[dim] = range;
            ranges
        };
        let (before, rest) = parts.split_at_mut(own.start);
        let (held, after) = rest.split_at_mut(own.len());
        let mut ghosts = Vec::with_capacity(edges.ghosts.len());
        for Ghost { range, source } in &edges.ghosts {
            let elements = match *source {
                Source::Edge(edge) => edges.list[edge].copy.read(worker)?,
                Source::Part(part) if part < own.start => before[part].read_before(worker)?,
                Source::Part(part) => after[part - own.end].read_before(worker)?,
            };
            ghosts.push((box_of(range.clone()), elements));
        }
        let mut mine = Vec::with_capacity(held.len());
        for (part, partition) in own.zip(held) {
            mine.push((box_of(layout.range(part)), partition.write(worker)?));
        }
        let patches = Patches::of_parts(shape, mine).with_ghosts(shape, ghosts);
        Ok(ViewMut::new(PartBounds { array: name, shape, dim }, patches))
    }

    /// An edge that is as new as its part, and has this of it.
    fn fresh_edge(&self, part: usize, needed: &Range<usize>) -> Option<usize> {
        let stamp = Some(self.parts[part].stamp());
        let has = |edge: &Edge<T>| edge.piece.0 == part && contains(&edge.piece.1, needed);
        self.edges.list.iter().position(|edge| has(edge) && edge.stamp == stamp)
    }

    /// A view of what this worker reads in a loop over several hosts: its own parts, and of others no more than what it reads.
    pub(crate) fn view_of<'a>(&'a self, worker: &'a Worker, reads: &Reads) -> Result<View<'a, T, N>> {
        let dim = self.layout.dim;
        if !reads.single[dim] {
            return self.view_on(worker, None);
        }
        self.check()?;
        let me = worker.rank();
        let read = reads.range(me as usize, dim);
        let mut from: Vec<(usize, Window<N>, &Partition<T>)> = Vec::new();
        for (part, owner) in self.layout.owners.iter().enumerate() {
            let needed = common(&read, &self.layout.range(part));
            if needed.is_empty() {
                continue;
            }
            let edge = self.fresh_edge(part, &needed).filter(|_| *owner != me);
            from.push(match edge.map(|edge| &self.edges.list[edge]) {
                Some(edge) => (needed.len(), self.window_of(&edge.piece), &edge.copy),
                None => (needed.len(), self.window(part), &self.parts[part]),
            });
        }
        // Where most is read is looked first.
        from.sort_by_key(|(needed, ..)| std::cmp::Reverse(*needed));
        from.iter().try_for_each(|(_, _, partition)| partition.ask(worker))?;
        let mut parts = Vec::with_capacity(from.len());
        for (_, window, partition) in from {
            if window.len() != 0 {
                parts.push((window, &partition.read(worker)?[..window.len()]));
            }
        }
        // Nothing is put together from parts that are not all here.
        let whole = Window::new(&self.shape, 0, &(0..0));
        Ok(View::new(self.bounds(), whole, parts, &self.gathered))
    }
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

fn contains(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start <= b.start && b.end <= a.end
}

/// The pieces that become edges: those that overlap or touch are one. And the parts of which one would be more than half.
fn chosen(mut pieces: Vec<Piece>, layout: &Layout) -> (Vec<Piece>, Vec<usize>) {
    pieces.sort_unstable_by_key(|(part, range)| (*part, range.start));
    let mut joined: Vec<Piece> = Vec::new();
    for (part, range) in pieces {
        match joined.last_mut() {
            Some((last, before)) if *last == part && range.start <= before.end => {
                before.end = before.end.max(range.end);
            }
            _ => joined.push((part, range)),
        }
    }
    let is_whole = |part: &usize| {
        let is_most = |range: &Range<usize>| 2 * range.len() > layout.range(*part).len();
        joined.iter().any(|(other, range)| other == part && is_most(range))
    };
    let whole: Vec<usize> = (0..layout.parts()).filter(is_whole).collect();
    joined.retain(|(part, _)| !whole.contains(part));
    (joined, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_meet_are_one_and_much_of_a_part_is_all_of_it() {
        let layout = Layout { dim: 0, bounds: vec![0, 10, 30, 40], owners: vec![0, 1, 2] };
        let pieces =
            vec![(1, 29..30), (0, 2..5), (1, 12..13), (0, 4..8), (1, 10..12), (2, 30..33), (2, 35..40)];
        let (edges, whole) = chosen(pieces, &layout);
        assert_eq!(edges, [(1, 10..13), (1, 29..30), (2, 30..33), (2, 35..40)]);
        assert_eq!(whole, [0]);
    }
}
