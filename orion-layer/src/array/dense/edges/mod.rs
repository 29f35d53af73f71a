//! Rows that workers of other hosts read of the parts of a dense array, in areas of their own: they go to these hosts without the rest.
//!
//! On several hosts, a part that was written goes whole to each host whose workers read any of it. Loops over neighbours (stencils)
//! read the first and last rows of it. So a loop that reads an array again tells it which rows workers of other hosts read of each
//! part ([`DistArray::expect_reads`]). The next loop that writes the array makes areas for these rows, its *edges*
//! ([`DistArray::meet_edges`]), and after each pass that writes it, who owns a part copies them there ([`DistArray::lend_all`]).
//! All of this follows from plans, which are the same on all workers, so nobody has to be told. An edge counts while the stamp of its part is
//! what it was when the edge was copied; else readers take the part, which is always right.
mod ghosts;
mod reads;

use self::reads::Source;
use super::DistArray;
use crate::array::partition::{Hold, Partition};
use crate::context::{Context, Outcome};
use crate::contract::Layout;
use crate::error::Result;
use crate::fabric::shown::Shown;
use crate::site::Site;
use crate::view::{Window, copy_box};
use hectare_dsm::{Element, Rank, Worker};
use std::cell::RefCell;
use std::ops::Range;

/// The most edges of a part: each is an area, of which a job has some thousands.
const MOST_PIECES: usize = 4;

/// Of an array that was lent in place so often in vain, parts are published whenever they are lent.
const MOST_PUBLISHED_ANEW: u32 = 3;

/// Some of the indices that a part has in the dimension in which the array is cut.
type Piece = (usize, Range<usize>);

/// The edges of an array.
#[derive(Debug)]
pub(super) struct Edges<T: Element> {
    list: Vec<Edge<T>>,
    /// Rows that loops read and no edge has.
    wanted: RefCell<Vec<Piece>>,
    /// Parts of which so much is read that they go whole.
    whole: Vec<usize>,
    /// How often some were made: names are not used twice.
    made: u64,
    /// Parts change their owners, so edges would have to.
    is_off: bool,
    /// Of the pass that is under way, if it writes the array: from where this worker reads beyond its own parts.
    ghosts: Vec<Source>,
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
        let mut deleted = Ok(());
        for edge in self.list.drain(..) {
            // Each, though one fails.
            deleted = deleted.and(edge.copy.delete(worker));
        }
        deleted
    }
}

impl<T: Element, const N: usize> DistArray<T, N> {
    fn window_of(&self, (_, range): &Piece) -> Window<N> {
        Window::new(&self.shape, self.layout.dim, range)
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
        let (kept, dropped): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.edges.list).into_iter().partition(|edge| pieces.contains(&edge.piece));
        let is_new = |piece: &Piece| kept.iter().all(|edge| edge.piece != *piece);
        let fresh: Vec<Piece> = pieces.iter().filter(|piece| is_new(piece)).cloned().collect();
        let made = self.make_edges(context, site, &fresh)?;
        self.edges.list = kept;
        // All have met since they read these last.
        dropped.into_iter().try_for_each(|edge| edge.copy.delete(context.fabric.worker))?;
        match made {
            Some(made) => self.edges.list.extend(made),
            None => {
                self.edges.is_off = true;
                self.edges.delete(context.fabric.worker)?;
            }
        }
        Ok(())
    }

    /// Makes edges of these pieces, and finds those of the others; `None` if a worker has no room for them. Collective.
    fn make_edges(
        &mut self,
        context: &mut Context<'_>,
        site: Site,
        pieces: &[Piece],
    ) -> Result<Option<Vec<Edge<T>>>> {
        self.edges.made += 1;
        let mut mine = Vec::new();
        let made = self.make_own(context.fabric.worker, pieces, &mut mine);
        if !self.all_have(context, site, &made)? {
            mine.into_iter().try_for_each(|(_, hold)| hold.delete(context.fabric.worker))?;
            return Ok(None);
        }
        let owners: Vec<Rank> = pieces.iter().map(|(part, _)| self.layout.owners[*part]).collect();
        let layout = Layout { dim: self.layout.dim, bounds: Vec::new(), owners };
        let found = Partition::attach_all(context.fabric.worker, &layout, mine, |edge| self.edge_name(edge));
        let all_found = self.all_have(context, site, &found)?;
        let copies = found.unwrap_or_default();
        if !all_found {
            copies.into_iter().try_for_each(|copy| copy.delete(context.fabric.worker))?;
            return Ok(None);
        }
        let edge = |((piece, copy), owner): ((&Piece, _), _)| Edge {
            piece: piece.clone(),
            owner,
            copy,
            stamp: None,
        };
        Ok(Some(pieces.iter().zip(copies).zip(layout.owners).map(edge).collect()))
    }

    /// Whether all workers could do what this one has done or could not do. Collective.
    fn all_have<R>(&self, context: &mut Context<'_>, site: Site, mine: &Result<R>) -> Result<bool> {
        if let Err(error) = mine {
            tracing::debug!(array = self.name, %error, "no room for edges: parts go whole");
        }
        let mut all = true;
        context.exchange_values(site, &mine.is_ok(), |_, has: bool| {
            all &= has;
            Ok(())
        })?;
        Ok(all)
    }

    fn edge_name(&self, edge: usize) -> String {
        format!("orion/{}/{}/edges/{}/{edge}", self.number, self.generation, self.edges.made)
    }

    /// Those of them that are pieces of parts of this worker.
    fn make_own(
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
        self.copy_edges(worker)
    }

    /// The same, without a copy of the parts for those who do not ask for it ([`Partition::lend_in_place`]), unless loops have needed
    /// that before.
    pub(crate) fn lend_all_in_place(&mut self, worker: &Worker) -> Result<()> {
        if self.published_anew >= MOST_PUBLISHED_ANEW {
            return self.lend_all(worker);
        }
        self.parts.iter_mut().try_for_each(|partition| partition.lend_in_place(worker))?;
        self.copy_edges(worker)
    }

    fn copy_edges(&mut self, worker: &Worker) -> Result<()> {
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
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

fn contains(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start <= b.start && b.end <= a.end
}

/// The pieces that become edges: those that overlap or touch are one. And the parts that go whole: of which one would be more than half,
/// or that would have more than [`MOST_PIECES`].
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
        let of_it = || joined.iter().filter(|(other, _)| other == part);
        of_it().count() > MOST_PIECES || of_it().any(|(_, range)| is_most(range))
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
        let every_second = |last: usize| (10..last).step_by(2).map(|row| (1, row..row + 1)).collect();
        assert_eq!(chosen(every_second(18), &layout).0.len(), MOST_PIECES);
        assert_eq!(chosen(every_second(20), &layout), (vec![], vec![1]));
    }
}
