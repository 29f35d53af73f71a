//! The rows of one block: split, summed up, and given new derivatives.
use super::loss::{Loss, Packed, Scale};
use super::slot::{PAD, Slot};
use super::tree::Cut;
use hectare::orion::accumulate::SumsView;
use std::ops::Range;

/// The slots of the rows of a block, one row after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a, S> {
    /// Where each begins, in multiples of [`PAD`], and where the last one ends.
    pub(crate) starts: &'a [u32],
    pub(crate) slots: &'a [S],
}

impl<'a, S: Slot> Rows<'a, S> {
    #[inline(always)]
    fn row(&self, row: u16) -> &'a [[S; PAD]] {
        let (start, end) = (self.starts[row as usize], self.starts[row as usize + 1]);
        &self.slots.as_chunks().0[start as usize..end as usize]
    }

    /// Visits all slots of rows, with their derivatives, and sums these up.
    #[inline(always)]
    fn visit(
        &self,
        order: &[u16],
        derivatives: &[Packed],
        total: &mut Packed,
        mut add: impl FnMut(S, Packed),
    ) {
        for row in order {
            let packed = derivatives[*row as usize];
            *total += packed;
            for slots in self.row(*row) {
                for slot in slots {
                    add(*slot, packed);
                }
            }
        }
    }

    #[inline(always)]
    fn is_in(&self, row: u16, first: S, count: S) -> bool {
        let mut found = false;
        for slots in self.row(row) {
            for slot in slots {
                found |= slot.is_within(first, count);
            }
        }
        found
    }
}

/// The state of a block's rows.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    /// The rows by leaves.
    pub(crate) order: &'a mut [u16],
    /// Where the rows of each leaf begin, and where they end.
    pub(crate) ranges: &'a mut [u32],
}

/// The targets of the rows of a block, their margins, and both derivatives.
pub(crate) type Derived<'a> = (&'a [f32], &'a mut [f32], &'a mut [Packed]);

impl Kept<'_> {
    fn range(&self, leaf: usize) -> Range<usize> {
        self.ranges[2 * leaf] as usize..self.ranges[2 * leaf + 1] as usize
    }

    fn set_range(&mut self, leaf: usize, range: Range<usize>) {
        self.ranges[2 * leaf] = range.start as u32;
        self.ranges[2 * leaf + 1] = range.end as u32;
    }
}

/// A leaf that is split, of which the left part keeps the number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) leaf: usize,
    /// The number of the right part.
    pub(crate) right: usize,
    pub(crate) cut: Cut,
    /// The part whose histogram is wanted, and the number of that histogram.
    pub(crate) wanted: Option<(usize, usize)>,
}

/// Room for one block.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    moved: Vec<u16>,
    histogram: Vec<Packed>,
}

/// Takes what is added to histograms.
pub(crate) trait Sink {
    fn add(&mut self, place: usize, x: Packed);
    fn add_row(&mut self, first: usize, row: &[Packed]);
}

impl Sink for SumsView<'_, Packed> {
    #[inline(always)]
    fn add(&mut self, place: usize, x: Packed) {
        SumsView::add(self, place, x);
    }

    fn add_row(&mut self, first: usize, row: &[Packed]) {
        SumsView::add_row(self, first, row);
    }
}

/// For the serial twin.
impl Sink for [Packed] {
    #[inline(always)]
    fn add(&mut self, place: usize, x: Packed) {
        self[place] += x;
    }

    fn add_row(&mut self, first: usize, row: &[Packed]) {
        self[first..][..row.len()].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
}

/// The parameters that all blocks have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) loss: Loss,
    /// Numbers of a histogram: slots, that of the padding, and the sum of all rows.
    pub(crate) width: usize,
}

impl Kernel {
    /// Splits leaves, and sums up the parts that are asked for.
    pub(crate) fn step<S: Slot>(
        &self,
        tasks: &[Task],
        rows: Rows<'_, S>,
        derivatives: &[Packed],
        kept: &mut Kept<'_>,
        scratch: &mut Scratch,
        sums: &mut (impl Sink + ?Sized),
    ) {
        for task in tasks {
            split(task, rows, kept, &mut scratch.moved);
            if let Some((leaf, number)) = task.wanted {
                let order = &kept.order[kept.range(leaf)];
                self.sum_up(number, order, derivatives, rows, &mut scratch.histogram, sums);
            }
        }
    }

    /// Ends a tree, whose leaves have these values, and begins the next one, of one leaf, which is summed up. Returns the
    /// greatest size of a first derivative.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn begin<S: Slot>(
        &self,
        (tasks, values): (&[Task], &[f32]),
        scale: &Scale,
        rows: Rows<'_, S>,
        (targets, margins, derivatives): Derived<'_>,
        kept: &mut Kept<'_>,
        scratch: &mut Scratch,
        sums: &mut (impl Sink + ?Sized),
    ) -> f32 {
        for task in tasks {
            split(task, rows, kept, &mut scratch.moved);
        }
        for (leaf, value) in values.iter().enumerate() {
            for row in &kept.order[kept.range(leaf)] {
                margins[*row as usize] += value;
            }
        }
        let mut most = 0.0;
        for ((derived, margin), target) in derivatives.iter_mut().zip(&*margins).zip(targets) {
            let (packed, size) = self.loss.derivatives(*margin, *target, scale);
            *derived = packed;
            most = if size > most { size } else { most };
        }
        kept.order.iter_mut().zip(0..).for_each(|(place, row)| *place = row);
        kept.set_range(0, 0..targets.len());
        self.sum_up(0, kept.order, derivatives, rows, &mut scratch.histogram, sums);
        most
    }

    fn sum_up<S: Slot>(
        &self,
        number: usize,
        order: &[u16],
        derivatives: &[Packed],
        rows: Rows<'_, S>,
        histogram: &mut Vec<Packed>,
        sums: &mut (impl Sink + ?Sized),
    ) {
        if order.is_empty() {
            return;
        }
        let first = number * self.width;
        let mut total = 0;
        match S::ALL {
            // As many as there are numbers of slots: no access has to be checked.
            Some(all) => {
                histogram.clear();
                histogram.resize(all, 0);
                let own = &mut histogram[..all];
                rows.visit(order, derivatives, &mut total, |slot, packed| own[slot.at()] += packed);
                sums.add_row(first, &own[..self.width - 1]);
            }
            None => {
                rows.visit(order, derivatives, &mut total, |slot, packed| {
                    sums.add(first + slot.at(), packed)
                });
            }
        }
        sums.add(first + self.width - 1, total);
    }
}

fn split<S: Slot>(task: &Task, rows: Rows<'_, S>, kept: &mut Kept<'_>, moved: &mut Vec<u16>) {
    let range = kept.range(task.leaf);
    let Cut { first, count, is_left } = task.cut;
    let (first, count) = (S::new(first), S::new(count));
    moved.resize(range.len(), 0);
    let order = &mut kept.order[range.clone()];
    let (mut left, mut right) = (0, 0);
    for at in 0..order.len() {
        let row = order[at];
        // Both places are written, and one counts: there is nothing to mispredict.
        let goes_left = rows.is_in(row, first, count) == is_left;
        order[left] = row;
        moved[right] = row;
        left += usize::from(goes_left);
        right += usize::from(!goes_left);
    }
    order[left..].copy_from_slice(&moved[..right]);
    let middle = range.start + left;
    kept.set_range(task.leaf, range.start..middle);
    kept.set_range(task.right, middle..range.end);
}
