//! A data set to try things with: the shape of MovieLens 1M, made up from a seed.
//!
//! Degrees have long tails on both sides (log-normal for users, a shifted power law for items), the truth is two
//! biases and a low-rank part, and noise and rounding to 1..=5 hide it.

use super::data::RawRating;
use super::random::Random;

/// How large a generated data set is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Users, each with at least one rating.
    pub users: usize,
    /// Items that can be rated.
    pub items: usize,
    /// Ratings, no two with the same user and item: at most `users * items`, at least `users`.
    pub ratings: usize,
}

impl Size {
    /// The size of MovieLens 1M.
    pub const MOVIELENS_1M: Self = Self { users: 6040, items: 3706, ratings: 1_000_209 };
}

const TRUE_RANK: usize = 8;
const MEAN: f64 = 3.58;
const USER_BIAS: f64 = 0.4;
const ITEM_BIAS: f64 = 0.5;
const LOW_RANK: f64 = 0.55;
const NOISE: f64 = 0.72;

/// Generates `size` with `seed`, grouped by user.
///
/// # Panics
/// When `size` asks for more pairs than there are, or for fewer ratings than users.
pub fn generate(size: Size, seed: u64) -> Vec<RawRating> {
    assert!(size.ratings <= size.users * size.items && size.ratings >= size.users, "{size:?} is impossible");
    let degrees = degrees(size, seed);
    let popular = Popularity::new(size.items, seed);
    let truth = Truth::new(size, seed);

    let mut random = Random::new(seed, "ratings");
    let mut ratings = Vec::with_capacity(size.ratings);
    // Which user chose an item last: says whether this one already has it, without clearing a set per user.
    let mut chosen_by = vec![usize::MAX; size.items];
    for (user, degree) in degrees.into_iter().enumerate() {
        for _ in 0..degree {
            let item = popular.choose(&mut random, |item| chosen_by[item] != user);
            chosen_by[item] = user;
            let noise = NOISE * random.normal();
            let value = (truth.mean(user, item) + noise).round().clamp(1.0, 5.0) as f32;
            ratings.push(RawRating { user: user as u64, item: item as u64, value });
        }
    }
    ratings
}

/// How many ratings each user gives: log-normal, then scaled and nudged until the sum is exact.
fn degrees(size: Size, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed, "degrees");
    let most = (size.items * 5 / 8).max(size.ratings.div_ceil(size.users));
    let wishes: Vec<f64> = (0..size.users).map(|_| (0.95 * random.normal()).exp()).collect();
    let scale = size.ratings as f64 / wishes.iter().sum::<f64>();
    let mut degrees: Vec<usize> =
        wishes.iter().map(|wish| ((wish * scale).round() as usize).clamp(1, most)).collect();
    let mut sum: usize = degrees.iter().sum();
    for user in (0..size.users).cycle() {
        if sum == size.ratings {
            return degrees;
        } else if sum < size.ratings && degrees[user] < most {
            degrees[user] += 1;
            sum += 1;
        } else if sum > size.ratings && degrees[user] > 1 {
            degrees[user] -= 1;
            sum -= 1;
        }
    }
    degrees
}

/// Items by how often they are rated: weight `1 / (rank + shift)^1.1`, drawn from its running sum.
struct Popularity {
    items: Vec<usize>,
    running_sum: Vec<f64>,
    /// For each of as many equal parts of the sum as there are items, the first item that reaches into it.
    starts: Vec<usize>,
}

impl Popularity {
    fn new(items: usize, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..items).collect();
        Random::new(seed, "popularity").shuffle(&mut order);
        let shift = items as f64 / 12.0;
        let mut sum = 0.0;
        let running_sum: Vec<f64> = (0..items)
            .map(|rank| {
                sum += (rank as f64 + shift + 1.0).powf(-1.1);
                sum
            })
            .collect();
        let starts = (0..items)
            .map(|part| running_sum.partition_point(|upto| *upto <= sum * part as f64 / items as f64))
            .collect();
        Self { items: order, running_sum, starts }
    }

    /// Draws an item that `free` accepts. After a few refusals it takes the next free one in order of popularity,
    /// so a user who rates almost everything costs no more than one who rates little.
    fn choose(&self, random: &mut Random, free: impl Fn(usize) -> bool) -> usize {
        let mut place = 0;
        for _ in 0..8 {
            place = self.draw(random);
            if free(self.items[place]) {
                return self.items[place];
            }
        }
        while !free(self.items[place]) {
            place = (place + 1) % self.items.len();
        }
        self.items[place]
    }

    fn draw(&self, random: &mut Random) -> usize {
        let (unit, count) = (random.unit(), self.items.len());
        let target = unit * self.running_sum[count - 1];
        let mut place = self.starts[(unit * count as f64) as usize].min(count - 1);
        while place + 1 < count && self.running_sum[place] <= target {
            place += 1;
        }
        place
    }
}

/// The truth behind the ratings: biases and a low-rank part.
struct Truth {
    users: Vec<[f64; TRUE_RANK + 1]>,
    items: Vec<[f64; TRUE_RANK + 1]>,
}

impl Truth {
    fn new(size: Size, seed: u64) -> Self {
        let mut random = Random::new(seed, "truth");
        // A product of two factors with this deviation each, summed over the rank, has deviation LOW_RANK.
        let factor = (LOW_RANK / (TRUE_RANK as f64).sqrt()).sqrt();
        let mut rows = |count: usize, bias: f64| {
            (0..count)
                .map(|_| {
                    std::array::from_fn(|k| random.normal() * if k == TRUE_RANK { bias } else { factor })
                })
                .collect()
        };
        Self { users: rows(size.users, USER_BIAS), items: rows(size.items, ITEM_BIAS) }
    }

    fn mean(&self, user: usize, item: usize) -> f64 {
        let (p, q) = (&self.users[user], &self.items[item]);
        MEAN + p[TRUE_RANK] + q[TRUE_RANK] + (0..TRUE_RANK).map(|k| p[k] * q[k]).sum::<f64>()
    }
}
