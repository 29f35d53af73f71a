//! The data set: ratings with dense row numbers, centred on their mean, split into training and test.

use super::random::Random;
use anyhow::{Result, ensure};
use std::collections::HashMap;

/// One rating as a file has it: ids may be any numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawRating {
    /// The user's id.
    pub user: u64,
    /// The item's id.
    pub item: u64,
    /// The input of the user.
    pub value: f32,
}

/// One rating of the training or test set: rows of the two factor matrices, and the value less the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// The row of the user matrix.
    pub user: u32,
    /// The row of the item matrix.
    pub item: u32,
    /// The rating less the mean of the training ratings.
    pub value: f32,
}

/// Training and test ratings over the same numbering of users and items.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// Users in the training set.
    pub users: usize,
    /// Items in the training set.
    pub items: usize,
    /// Mean of the training ratings, which every `value` is relative to.
    pub mean: f64,
    /// Ratings to learn from.
    pub train: Vec<Rating>,
    /// Ratings to test on, of users and items that the training set has.
    pub test: Vec<Rating>,
    /// Test ratings of users or items that the training set lacks. The mean is the prediction for them, so
    /// this centred value is also the error.
    pub test_unseen: Vec<f32>,
}

impl DataSet {
    /// Numbers users and items in order of appearance in `train`, and centres all ratings on its mean.
    ///
    /// # Errors
    /// When `train` is empty, or has more users or items than 32 bits can number.
    pub fn new(train: &[RawRating], test: &[RawRating]) -> Result<Self> {
        ensure!(!train.is_empty(), "there are no ratings to train on");
        ensure!(
            train.len() < u32::MAX as usize,
            "{} ratings are more than this program can number",
            train.len()
        );
        let mean = train.iter().map(|rating| f64::from(rating.value)).sum::<f64>() / train.len() as f64;
        let centre = |value: f32| (f64::from(value) - mean) as f32;

        let (mut users, mut items) = (Numbering::default(), Numbering::default());
        let train = train
            .iter()
            .map(|raw| Rating {
                user: users.number(raw.user),
                item: items.number(raw.item),
                value: centre(raw.value),
            })
            .collect();
        let (mut known, mut unseen) = (Vec::with_capacity(test.len()), Vec::new());
        for raw in test {
            match (users.find(raw.user), items.find(raw.item)) {
                (Some(user), Some(item)) => known.push(Rating { user, item, value: centre(raw.value) }),
                _ => unseen.push(centre(raw.value)),
            }
        }
        Ok(Self { users: users.count(), items: items.count(), mean, train, test: known, test_unseen: unseen })
    }
}

/// Takes exactly `fraction` of the ratings (rounded) out for testing, chosen at random; returns (train, test).
/// Both keep their order (selection sampling: Knuth, volume 2, algorithm 3.4.2 S).
pub fn split(ratings: &[RawRating], fraction: f64, seed: u64) -> (Vec<RawRating>, Vec<RawRating>) {
    let mut random = Random::new(seed, "split");
    let mut wanted = (ratings.len() as f64 * fraction).round() as usize;
    let (mut train, mut test) = (Vec::with_capacity(ratings.len() - wanted), Vec::with_capacity(wanted));
    for (position, rating) in ratings.iter().enumerate() {
        if random.below(ratings.len() - position) < wanted {
            wanted -= 1;
            test.push(*rating);
        } else {
            train.push(*rating);
        }
    }
    (train, test)
}

/// Gives consecutive numbers to ids. Small ids go through a table, the others through a hash map.
#[derive(Default)]
struct Numbering {
    small: Vec<u32>,
    large: HashMap<u64, u32>,
    count: u32,
}

impl Numbering {
    /// Ids below this are looked up in a table of at most 16 MiB.
    const SMALL: u64 = 1 << 22;
    const NONE: u32 = u32::MAX;

    fn number(&mut self, id: u64) -> u32 {
        let count = self.count;
        let number = if id < Self::SMALL {
            let id = id as usize;
            if id >= self.small.len() {
                self.small.resize(id + 1, Self::NONE);
            }
            if self.small[id] == Self::NONE {
                self.small[id] = count;
            }
            self.small[id]
        } else {
            *self.large.entry(id).or_insert(count)
        };
        self.count += u32::from(number == count);
        number
    }

    fn find(&self, id: u64) -> Option<u32> {
        if id < Self::SMALL {
            self.small.get(id as usize).copied().filter(|number| *number != Self::NONE)
        } else {
            self.large.get(&id).copied()
        }
    }

    fn count(&self) -> usize {
        self.count as usize
    }
}
