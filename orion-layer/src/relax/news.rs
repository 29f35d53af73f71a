//! Which elements of a buffered array a worker has to read again at its next clock.
//!
//! Those that anybody's contributions have changed since it last read them. It knows them as it goes through all lists of
//! contributions itself, to apply them to its share of the elements. To other shares other workers apply them, sooner or later; so
//! the part of a list that is in somebody's share is read once, when that one is known to have applied it. Lists that are together
//! about as long as the array are not kept: then all of it is read.
//!
//! At clocks that merge the head of the array alone, what lists name of its tail stays to be read.
use super::Applied;
use std::ops::Range;

/// The share of an array's elements that are named in lists at most: one of this number.
const PART: usize = 2;

/// Lists of elements, by the clock in which a worker contributed to them.
#[derive(Debug, Default)]
pub(super) struct News {
    lists: Vec<List>,
    /// How many elements they name that were not read.
    named: usize,
    /// Of each worker, up to which clock lists were not kept. All is read until all have applied these.
    forgotten: Vec<u64>,
    /// Elements from this one on are merged at some clocks only.
    head: usize,
    /// Room for lists.
    spare: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct List {
    rank: usize,
    clock: u64,
    elements: Vec<u32>,
    unread: Vec<Part>,
}

/// A part of a list that was not read.
#[derive(Debug)]
struct Part {
    /// The worker who applies it.
    server: usize,
    places: Range<usize>,
    is_tail: bool,
}

impl News {
    /// Begins a pass of `workers` workers over an array with a head of `head`; all has been read.
    pub(super) fn reset(&mut self, workers: usize, head: usize) {
        self.forget();
        self.head = head;
        self.forgotten.clear();
        self.forgotten.resize(workers, 0);
    }

    /// Room for a list.
    pub(super) fn room(&mut self) -> Vec<u32> {
        self.spare.pop().unwrap_or_default()
    }

    /// Adds the elements to which worker `rank` contributed in clock `clock`, ascending, of an array of which these are the shares
    /// of the workers; those in the share of worker `read.0` that are below `read.1` have been read.
    pub(super) fn add(
        &mut self,
        (rank, clock): (usize, u64),
        elements: Vec<u32>,
        shares: impl Iterator<Item = Range<usize>>,
        read: (usize, usize),
    ) {
        let place = |bound: usize| elements.partition_point(|element| (*element as usize) < bound);
        let (mut len, head) = (0, self.head);
        let unread = shares.enumerate().flat_map(|(server, share)| {
            len += share.len();
            let first = if server == read.0 { share.start.max(read.1.min(share.end)) } else { share.start };
            let middle = head.clamp(first, share.end);
            [(first..middle, false), (middle..share.end, true)].map(|(elements, is_tail)| Part {
                server,
                places: place(elements.start)..place(elements.end),
                is_tail,
            })
        });
        let unread: Vec<Part> = unread.filter(|part| !part.places.is_empty()).collect();
        if unread.is_empty() {
            self.spare.push(elements);
            return;
        }
        self.named += unread.iter().map(|part| part.places.len()).sum::<usize>();
        self.lists.push(List { rank, clock, elements, unread });
        if self.named > len / PART {
            for list in &self.lists {
                self.forgotten[list.rank] = self.forgotten[list.rank].max(list.clock + 1);
            }
            self.forget();
        }
    }

    /// Calls `read` with lists of the elements that are to be read, or with `None` if all are: of the `whole` array, or of its head.
    pub(super) fn read(&mut self, applied: Applied<'_>, whole: bool, read: &mut dyn FnMut(Option<&[u32]>)) {
        let all = self.forgotten.iter().any(|clock| *clock > 0);
        if all {
            read(None);
        }
        if all && whole {
            for (rank, forgotten) in self.forgotten.iter_mut().enumerate() {
                if *forgotten <= applied.by_all(rank) {
                    *forgotten = 0;
                }
            }
        }
        for List { rank, clock, elements, unread } in &mut self.lists {
            unread.retain(|Part { server, places, is_tail }| {
                let is_new = applied.by(*server, *rank) > *clock && (whole || !is_tail);
                if is_new && !all {
                    read(Some(&elements[places.clone()]));
                }
                if is_new {
                    self.named -= places.len();
                }
                !is_new
            });
        }
        for list in self.lists.extract_if(.., |list| list.unread.is_empty()) {
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
        read_at(news, applied, true)
    }

    fn read_at(news: &mut News, applied: &[u64; 4], whole: bool) -> Option<Vec<u32>> {
        let mut all = Some(Vec::new());
        news.read(Applied::new(applied, 2), whole, &mut |elements| match (&mut all, elements) {
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
        news.reset(2, 100);
        news.add((0, 0), vec![1, 2, 70], shares(100), (0, 0));
        news.add((1, 0), vec![2, 50], shares(100), (0, 0));
        assert_eq!(read(&mut news, &[1, 1, 0, 0]), Some(vec![1, 2, 2]));
        assert_eq!(read(&mut news, &[1, 1, 0, 0]), Some(vec![]));
        assert_eq!(read(&mut news, &[1, 1, 0, 1]), Some(vec![50]));
        assert_eq!(read(&mut news, &[1, 1, 1, 1]), Some(vec![70]));
        assert_eq!(read(&mut news, &[1, 1, 1, 1]), Some(vec![]));
    }

    #[test]
    fn what_has_been_read_is_not_read_again() {
        let mut news = News::default();
        news.reset(2, 100);
        news.add((0, 0), vec![1, 2, 70], shares(100), (0, 100));
        // Nothing is left of it, however long it is.
        news.add((1, 0), (0..50).collect(), shares(100), (0, 100));
        assert_eq!(read(&mut news, &[1, 1, 0, 0]), Some(vec![]));
        assert_eq!(read(&mut news, &[1, 1, 1, 1]), Some(vec![70]));
    }

    #[test]
    fn long_lists_are_not_kept_and_all_is_read_until_they_are_applied() {
        let mut news = News::default();
        news.reset(2, 100);
        news.add((0, 0), vec![1], shares(10), (0, 0));
        news.add((1, 0), (0..8).collect(), shares(10), (0, 0));
        assert_eq!(read(&mut news, &[1, 1, 1, 0]), None);
        // Worker 1's list is not applied everywhere yet, and what comes is read as well.
        news.add((0, 1), vec![3], shares(10), (0, 0));
        assert_eq!(read(&mut news, &[2, 1, 1, 0]), None);
        assert_eq!(read(&mut news, &[2, 1, 2, 1]), None);
        assert_eq!(read(&mut news, &[2, 1, 2, 1]), Some(vec![]));
    }
    #[test]
    fn tails_stay_to_be_read_until_a_clock_of_the_whole() {
        let mut news = News::default();
        news.reset(2, 20);
        // A clock of the whole ended just now: all of the own share was read.
        news.add((0, 0), vec![1, 30, 70], shares(100), (0, 100));
        // A clock of the head: what is of the tail was not.
        news.add((1, 0), vec![2, 30, 50], shares(100), (0, 20));
        assert_eq!(read_at(&mut news, &[1, 1, 1, 1], false), Some(vec![]));
        assert_eq!(read_at(&mut news, &[1, 1, 1, 1], true), Some(vec![70, 30, 50]));
        news.add((1, 1), vec![2, 50], shares(100), (1, 0));
        assert_eq!(read_at(&mut news, &[1, 2, 1, 1], false), Some(vec![2]));
        assert_eq!(read_at(&mut news, &[1, 2, 1, 2], true), Some(vec![50]));
    }

    #[test]
    fn a_clock_of_the_head_does_not_end_that_all_is_read() {
        let mut news = News::default();
        news.reset(2, 2);
        news.add((1, 0), (0..8).collect(), shares(10), (0, 0));
        assert_eq!(read_at(&mut news, &[0, 1, 0, 1], false), None);
        assert_eq!(read_at(&mut news, &[0, 1, 0, 1], true), None);
        assert_eq!(read_at(&mut news, &[0, 1, 0, 1], true), Some(vec![]));
    }
}
