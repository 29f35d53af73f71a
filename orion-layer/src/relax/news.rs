//! Which elements of a buffered array a worker has to read again at its next clock.
//!
//! Those that anybody's contributions have changed since it last read them. It knows them as it goes through all lists of
//! contributions itself, to apply them to its share of the elements. To other shares other workers apply them, sooner or later; so
//! the part of a list that is in somebody's share is read once, when that one is known to have applied it. Lists that are together
//! about as long as the array are not kept: then all of it is read.
use super::Applied;
use std::ops::Range;

/// So many elements of an array are named in lists at most, as a part of all.
const PART: usize = 2;

/// Lists of elements, by the clock in which a worker contributed to them.
#[derive(Debug, Default)]
pub(super) struct News {
    lists: Vec<List>,
    /// How many elements they name.
    named: usize,
    /// Of each worker, up to which clock lists were not kept. All is read until all have applied these.
    forgotten: Vec<u64>,
    /// Room for lists.
    spare: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct List {
    rank: usize,
    clock: u64,
    elements: Vec<u32>,
    /// The parts that were not read, by the worker who applies them.
    unread: Vec<(usize, Range<usize>)>,
}

impl News {
    /// Begins a pass of so many workers; all has been read.
    pub(super) fn reset(&mut self, workers: usize) {
        self.forget();
        self.forgotten.clear();
        self.forgotten.resize(workers, 0);
    }

    /// Room for a list.
    pub(super) fn room(&mut self) -> Vec<u32> {
        self.spare.pop().unwrap_or_default()
    }

    /// Adds the elements to which worker `rank` contributed in clock `clock`, ascending, of an array of which these are the shares
    /// of the workers; those in the share of worker `read` have been read.
    pub(super) fn add(
        &mut self,
        (rank, clock): (usize, u64),
        elements: Vec<u32>,
        shares: impl Iterator<Item = Range<usize>>,
        read: Option<usize>,
    ) {
        let place = |bound: usize| elements.partition_point(|element| (*element as usize) < bound);
        let mut len = 0;
        let unread = shares.enumerate().map(|(server, share)| {
            len += share.len();
            (server, place(share.start)..place(share.end))
        });
        let unread = unread.filter(|(server, part)| !part.is_empty() && read != Some(*server));
        let unread: Vec<(usize, Range<usize>)> = unread.collect();
        if unread.is_empty() {
            self.spare.push(elements);
            return;
        }
        self.named += elements.len();
        self.lists.push(List { rank, clock, elements, unread });
        if self.named > len / PART {
            for list in &self.lists {
                self.forgotten[list.rank] = self.forgotten[list.rank].max(list.clock + 1);
            }
            self.forget();
        }
    }

    /// Calls `read` with lists of the elements that are to be read, or with `None` if all are.
    pub(super) fn read(&mut self, applied: Applied<'_>, read: &mut dyn FnMut(Option<&[u32]>)) {
        let all = self.forgotten.iter().any(|clock| *clock > 0);
        if all {
            read(None);
            for (rank, forgotten) in self.forgotten.iter_mut().enumerate() {
                if *forgotten <= applied.by_all(rank) {
                    *forgotten = 0;
                }
            }
        }
        for List { rank, clock, elements, unread } in &mut self.lists {
            unread.retain(|(server, part)| {
                let is_new = applied.by(*server, *rank) > *clock;
                if is_new && !all {
                    read(Some(&elements[part.clone()]));
                }
                !is_new
            });
        }
        for list in self.lists.extract_if(.., |list| list.unread.is_empty()) {
            self.named -= list.elements.len();
            self.spare.push(list.elements);
        }
    }

    fn forget(&mut self) {
        self.spare.extend(self.lists.drain(..).map(|list| list.elements));
        self.named = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads when worker 0 has applied the first two clocks of workers 0 and 1, and worker 1 the others.
    fn read(news: &mut News, applied: &[u64; 4]) -> Option<Vec<u32>> {
        let mut all = Some(Vec::new());
        news.read(Applied::new(applied, 2), &mut |elements| match (&mut all, elements) {
            (Some(all), Some(elements)) => all.extend(elements),
            _ => all = None,
        });
        all
    }

    fn shares(len: usize) -> impl Iterator<Item = Range<usize>> {
        [0..len / 2, len / 2..len].into_iter()
    }

    #[test]
    fn parts_of_lists_are_read_once_when_they_are_applied() {
        let mut news = News::default();
        news.reset(2);
        news.add((0, 0), vec![1, 2, 70], shares(100), None);
        news.add((1, 0), vec![2, 50], shares(100), None);
        assert_eq!(read(&mut news, &[1, 1, 0, 0]), Some(vec![1, 2, 2]));
        assert_eq!(read(&mut news, &[1, 1, 0, 0]), Some(vec![]));
        assert_eq!(read(&mut news, &[1, 1, 0, 1]), Some(vec![50]));
        assert_eq!(read(&mut news, &[1, 1, 1, 1]), Some(vec![70]));
        assert_eq!(read(&mut news, &[1, 1, 1, 1]), Some(vec![]));
    }

    #[test]
    fn what_has_been_read_is_not_read_again() {
        let mut news = News::default();
        news.reset(2);
        news.add((0, 0), vec![1, 2, 70], shares(100), Some(0));
        // Nothing is left of it, however long it is.
        news.add((1, 0), (0..50).collect(), shares(100), Some(0));
        assert_eq!(read(&mut news, &[1, 1, 0, 0]), Some(vec![]));
        assert_eq!(read(&mut news, &[1, 1, 1, 1]), Some(vec![70]));
    }

    #[test]
    fn long_lists_are_not_kept_and_all_is_read_until_they_are_applied() {
        let mut news = News::default();
        news.reset(2);
        news.add((0, 0), vec![1], shares(10), None);
        news.add((1, 0), (0..8).collect(), shares(10), None);
        assert_eq!(read(&mut news, &[1, 1, 1, 0]), None);
        // Worker 1's list is not applied everywhere yet, and what comes is read as well.
        news.add((0, 1), vec![3], shares(10), None);
        assert_eq!(read(&mut news, &[2, 1, 1, 0]), None);
        assert_eq!(read(&mut news, &[2, 1, 2, 1]), None);
        assert_eq!(read(&mut news, &[2, 1, 2, 1]), Some(vec![]));
    }
}
