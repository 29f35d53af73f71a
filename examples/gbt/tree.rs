//! Trees, as they are saved and as they predict.
use super::bins::Bins;
use serde::{Deserialize, Serialize};

/// A place in a tree: where a row goes next, or the value that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Node {
    /// To node `left` if the value of the feature is at most the threshold, else to `right`. Both come later in the list.
    Split {
        feature: u32,
        threshold: f32,
        left: u32,
        right: u32,
    },
    Leaf {
        value: f32,
    },
}

/// A tree, from node 0 on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// The value of a row, whose features ascend; those that it does not have are zero.
    pub(crate) fn predict(&self, row: &[(u32, f32)]) -> f32 {
        let mut at = 0;
        loop {
            match self.nodes[at as usize] {
                Node::Leaf { value } => return value,
                Node::Split { feature, threshold, left, right } => {
                    let found = row.binary_search_by_key(&feature, |(feature, _)| *feature);
                    let value = found.map_or(0.0, |place| row[place].1);
                    at = if value <= threshold { left } else { right };
                }
            }
        }
    }

    /// Why this is no tree, if it is none.
    pub(crate) fn fault(&self, features: usize) -> Option<String> {
        let count = self.nodes.len();
        if count == 0 {
            return Some("it has no nodes".into());
        }
        self.nodes.iter().enumerate().find_map(|(number, node)| match *node {
            Node::Leaf { value } if !value.is_finite() => {
                Some(format!("node {number}: the value is {value}"))
            }
            Node::Leaf { .. } => None,
            Node::Split { feature, .. } if feature as usize >= features => {
                Some(format!("node {number}: feature {feature}, of {features}"))
            }
            Node::Split { left, right, .. } => {
                let inside = |to: u32| (number + 1..count).contains(&(to as usize));
                (!inside(left) || !inside(right))
                    .then(|| format!("node {number}: its children are {left} and {right}"))
            }
        })
    }
}

/// A split of a leaf: rows in certain slots go to one side, and all others to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// The slots.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// Whether it is to the left that they go.
    pub(crate) is_left: bool,
}

/// Slot `slot` as a place to split at: the feature, the threshold, and who goes where.
pub(crate) fn cut_at(bins: &Bins, slot: usize) -> (u32, f32, Cut) {
    // Features without slots begin where the next one does.
    let number = bins.features.partition_point(|feature| feature.first <= slot) - 1;
    let feature = &bins.features[number];
    let bin = slot - feature.first;
    // Bins up to this one go to the left.
    let cut = match bin < feature.silent {
        true => Cut { first: feature.first, count: bin + 1, is_left: true },
        false => Cut { first: slot, count: feature.slots() - bin, is_left: false },
    };
    (number as u32, feature.thresholds[bin], cut)
}
