//! Growing a tree: which leaves are split where. All workers do the same here, with the same histograms.
use super::bins::Bins;
use super::block::Task;
use super::loss::{Packed, Scale, unpacked};
use super::machine::Machine;
use super::options::Growth;
use super::tree::{Node, Tree, cut_at};
use hectare::bytemuck::{Pod, Zeroable};
use hectare::orion::{Context, Result};

/// When leaves are split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) growth: Growth,
    pub(crate) depth: usize,
    pub(crate) leaves: usize,
    pub(crate) lambda: f64,
    pub(crate) least_weight: f64,
    pub(crate) least_gain: f64,
    pub(crate) rate: f64,
}

impl Limits {
    /// Leaves of a tree, at most.
    pub(crate) fn most_leaves(&self) -> usize {
        let by_depth = 1usize.checked_shl(self.depth as u32).filter(|_| self.depth > 0).unwrap_or(usize::MAX);
        match self.growth {
            Growth::Depth => by_depth,
            Growth::Leaf => self.leaves.min(by_depth),
        }
    }
}

/// A place to split a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[bytemuck(crate = "hectare::bytemuck")]
#[repr(C)]
pub(crate) struct Split {
    /// Above zero, if there is a place.
    gain: f64,
    slot: u64,
    /// The sum of what goes to the left.
    left: Packed,
}

#[derive(Debug)]
struct Leaf {
    /// Its place in the tree.
    node: usize,
    depth: usize,
    total: Packed,
    /// Of leaves that may still be split.
    histogram: Vec<Packed>,
    split: Option<Split>,
}

/// A tree and what has to be done with it before the next one.
#[derive(Debug, Default)]
pub(crate) struct Grown {
    pub(crate) tree: Tree,
    /// Splits that no block has made yet.
    pub(crate) tasks: Vec<Task>,
    /// The values of the leaves, by their numbers.
    pub(crate) values: Vec<f32>,
}

/// Grows trees.
#[derive(Debug)]
pub(crate) struct Grower<'b> {
    pub(crate) bins: &'b Bins,
    pub(crate) limits: Limits,
}

impl<'b> Grower<'b> {
    pub(crate) fn new(bins: &'b Bins, limits: Limits) -> Grower<'b> {
        Grower { bins, limits }
    }

    /// A tree, from the histogram of all rows. Collective.
    pub(crate) fn grow(
        &self,
        w: &mut Context<'_>,
        machine: &mut impl Machine,
        root: Vec<Packed>,
        scale: &Scale,
    ) -> Result<Grown> {
        let width = self.bins.width();
        let mut root = Leaf { node: 0, depth: 0, total: root[width - 1], histogram: root, split: None };
        root.split = self.search(&root, scale).found();
        let (mut leaves, mut grown) = (vec![root], Grown::default());
        grown.tree.nodes.push(Node::Leaf { value: 0.0 });
        loop {
            let chosen = self.choose(&leaves);
            if chosen.is_empty() {
                break;
            }
            let full = leaves.len() + chosen.len() >= self.limits.most_leaves();
            let (mut tasks, mut wanted) = (Vec::new(), Vec::new());
            for leaf in chosen {
                let right = leaves.len();
                let parent = &mut leaves[leaf];
                let Some(Split { slot, left, .. }) = parent.split.take() else { continue };
                let (feature, threshold, cut) = cut_at(self.bins, slot as usize);
                let children = grown.tree.nodes.len();
                let (to_left, to_right) = (children as u32, children as u32 + 1);
                grown.tree.nodes[parent.node] =
                    Node::Split { feature, threshold, left: to_left, right: to_right };
                grown.tree.nodes.extend([Node::Leaf { value: 0.0 }; 2]);
                let total = parent.total - left;
                let histogram = std::mem::take(&mut parent.histogram);
                (parent.node, parent.depth, parent.total) = (children, parent.depth + 1, left);
                let other = Leaf {
                    node: children + 1,
                    depth: parent.depth,
                    total,
                    histogram: Vec::new(),
                    split: None,
                };
                let is_last = full || other.depth == self.limits.depth;
                // The part of less weight is summed up, the other one is the rest.
                let (small, large) =
                    if unpacked(left).1 <= unpacked(total).1 { (leaf, right) } else { (right, leaf) };
                tasks.push(Task { leaf, right, cut, wanted: (!is_last).then_some((small, wanted.len())) });
                leaves.push(other);
                if !is_last {
                    wanted.push((small, large, histogram));
                }
            }
            if wanted.is_empty() {
                // Nothing is asked of the rows before the next tree begins.
                grown.tasks.extend(tasks);
                continue;
            }
            grown.tasks.append(&mut tasks);
            let sums = machine.step(w, &grown.tasks, wanted.len())?;
            grown.tasks.clear();
            let mut fresh = Vec::new();
            for ((small, large, mut rest), sums) in wanted.into_iter().zip(sums.chunks_exact(width)) {
                rest.iter_mut().zip(sums).for_each(|(rest, sum)| *rest -= sum);
                leaves[small].histogram = sums.to_vec();
                leaves[large].histogram = rest;
                fresh.extend([small, large]);
            }
            let splits =
                machine.each(w, fresh.len(), &|number| self.search(&leaves[fresh[number]], scale))?;
            for (leaf, split) in fresh.into_iter().zip(splits) {
                leaves[leaf].split = split.found();
            }
        }
        for leaf in &leaves {
            let value = self.value(leaf.total, scale);
            grown.tree.nodes[leaf.node] = Node::Leaf { value };
            grown.values.push(value);
        }
        Ok(grown)
    }

    /// The leaves that are split next.
    fn choose(&self, leaves: &[Leaf]) -> Vec<usize> {
        let open = leaves.iter().enumerate().filter_map(|(number, leaf)| Some((number, leaf.split?)));
        match self.limits.growth {
            Growth::Depth => open.map(|(number, _)| number).collect(),
            Growth::Leaf if leaves.len() >= self.limits.most_leaves() => Vec::new(),
            Growth::Leaf => {
                // The first of those that gain the most.
                let best = open.reduce(|best, other| if other.1.gain > best.1.gain { other } else { best });
                best.map(|(number, _)| number).into_iter().collect()
            }
        }
    }

    fn value(&self, total: Packed, scale: &Scale) -> f32 {
        let (first, second) = unpacked(total);
        let weight = f64::from(second) * scale.of_second + self.limits.lambda;
        let value = if weight > 0.0 { -f64::from(first) * scale.of_first / weight } else { 0.0 };
        (self.limits.rate * value) as f32
    }

    /// Finds the best place to split a leaf, of which the first is taken if there are several.
    fn search(&self, leaf: &Leaf, scale: &Scale) -> Split {
        let lefts = lefts_of(self.bins, &leaf.histogram);
        let Limits { lambda, least_weight, least_gain, .. } = self.limits;
        let mut gains = vec![f64::NEG_INFINITY; lefts.len()];
        let parts = |sum: Packed| {
            let (first, second) = unpacked(sum);
            (f64::from(first) * scale.of_first, f64::from(second) * scale.of_second)
        };
        for (gain, left) in gains.iter_mut().zip(&lefts) {
            let ((g, h), (other_g, other_h)) = (parts(*left), parts(leaf.total - left));
            let (a, b) = (h + lambda, other_h + lambda);
            // g² / a + other_g² / b, with one division.
            let sum = (g * g * b + other_g * other_g * a) / (a * b);
            let is_allowed = (h >= least_weight) & (other_h >= least_weight) & (a * b > 0.0);
            *gain = if is_allowed { sum } else { f64::NEG_INFINITY };
        }
        let (g, h) = parts(leaf.total);
        let alone = if h + lambda > 0.0 { g * g / (h + lambda) } else { 0.0 };
        let mut best = None;
        let mut most = f64::NEG_INFINITY;
        for (slot, gain) in gains.iter().enumerate() {
            if *gain > most {
                (most, best) = (*gain, Some(slot));
            }
        }
        // A gain as small as a rounding error is none.
        let bound = least_gain.max(1e-9 * alone);
        let split = |slot: usize| Split { gain: most - alone, slot: slot as u64, left: lefts[slot] };
        best.map(split).filter(|split| split.gain > bound).unwrap_or(Split::zeroed())
    }
}

impl Split {
    /// This, if there is a place.
    fn found(self) -> Option<Split> {
        (self.gain > 0.0).then_some(self)
    }
}

/// For each place to split at, the sum of what goes to the left: of each slot one, as there is one bin more than places.
fn lefts_of(bins: &Bins, histogram: &[Packed]) -> Vec<Packed> {
    let total = histogram[bins.width() - 1];
    let mut lefts = Vec::with_capacity(bins.slots);
    for feature in &bins.features {
        let sums = &histogram[feature.first..][..feature.slots()];
        let mut left = 0;
        for sum in &sums[..feature.silent] {
            left += sum;
            lefts.push(left);
        }
        // From here on, the silent bin is on the left too.
        let mut left = total - sums[feature.silent..].iter().sum::<Packed>();
        for sum in &sums[feature.silent..] {
            lefts.push(left);
            left += sum;
        }
    }
    lefts
}
