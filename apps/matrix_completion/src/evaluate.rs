//! Loss and test error, the same bits for every number of workers.
//!
//! Ratings are cut into chunks of a fixed size; each chunk is summed in order, in `f64`, and then the chunks'
//! sums are, in order. So the tree of additions does not depend on who computes which chunk.

use super::data::Rating;
use super::kernel::{Element, Kernel, Kernels, Pass, Rate};
use super::model::Model;
use super::sweep::{AHEAD, prefetch};
use std::sync::Mutex;
use std::thread;

/// Ratings in a chunk.
const CHUNK: usize = 16 * 1024;

/// The sum of the squared errors over `ratings`, computed with up to `workers` threads.
pub fn squared_error<E: Element>(
    kernels: &Kernels<E>,
    model: &Model<E>,
    ratings: &[Rating],
    workers: usize,
) -> f64 {
    let mut sums = vec![0.0; ratings.len().div_ceil(CHUNK)];
    let threads = workers.min(sums.len());
    let none = E::default();
    let sum_chunk = |ratings| {
        let rate = Rate { learning_rate: none, regularization: none };
        kernels.run(rate, Chunk { model, ratings })
    };
    if threads <= 1 {
        for (sum, ratings) in sums.iter_mut().zip(ratings.chunks(CHUNK)) {
            *sum = sum_chunk(ratings);
        }
    } else {
        let chunks = Mutex::new(sums.iter_mut().zip(ratings.chunks(CHUNK)));
        // A statement of its own, so that the lock is not held while a chunk is summed.
        let next = || chunks.lock().expect("no thread panics with the lock").next();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((sum, ratings)) = next() {
                        *sum = sum_chunk(ratings);
                    }
                });
            }
        });
    }
    sums.iter().sum()
}

/// The root of the mean squared error over the test set. `unseen` are the errors for users and items that are
/// not in the model, where the prediction is the mean.
pub fn test_rmse<E: Element>(
    kernels: &Kernels<E>,
    model: &Model<E>,
    known: &[Rating],
    unseen: &[f32],
    workers: usize,
) -> f64 {
    let of_unseen: f64 = unseen.iter().map(|error| f64::from(*error) * f64::from(*error)).sum();
    let sum = squared_error(kernels, model, known, workers) + of_unseen;
    (sum / (known.len() + unseen.len()) as f64).sqrt()
}

struct Chunk<'a, E> {
    model: &'a Model<E>,
    ratings: &'a [Rating],
}

impl<E: Element> Pass<E> for Chunk<'_, E> {
    type Out = f64;

    #[inline(always)]
    fn run<K: Kernel<E>>(self, kernel: K) -> f64 {
        let (users, items, stride) =
            (self.model.users.as_slice(), self.model.items.as_slice(), kernel.stride());
        let mut sum = 0.0;
        for (place, rating) in self.ratings.iter().enumerate() {
            if let Some(soon) = self.ratings.get(place + AHEAD) {
                prefetch(users.as_ptr(), soon.user, stride);
                prefetch(items.as_ptr(), soon.item, stride);
            }
            let user = &users[rating.user as usize * stride..][..stride];
            let item = &items[rating.item as usize * stride..][..stride];
            let error = f64::from(rating.value) - kernel.dot(user, item).to_f64();
            sum += error * error;
        }
        sum
    }
}
