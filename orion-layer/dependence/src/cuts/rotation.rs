//! How long a rotation over blocks of unequal weights takes.

/// The steps of a rotation over a grid of blocks.
///
/// The first dimension is spread over the workers. At step `t`, worker `w` of `n` has block `w` of the first
/// dimension and block `(w · p / n + t) mod p` of each further one with `p` parts, so that with `p >= n` the
/// workers differ in every dimension (Gemulla et al., 2011; three dimensions: Beutel et al., 2014). With
/// several further dimensions there is a step for each combination of their shifts.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The step of each block, blocks in row-major order.
    step_of: Vec<usize>,
    steps: usize,
}

impl Rotation {
    /// The rotation over `parts` per dimension.
    ///
    /// # Panics
    /// If there is no dimension, or one has no parts.
    pub fn new(parts: &[usize]) -> Rotation {
        assert!(!parts.is_empty(), "a rotation needs a dimension");
        assert!(parts.iter().all(|&parts| parts > 0), "a dimension has at least one part");
        let (workers, times) = (parts[0], &parts[1..]);
        let mut step_of = Vec::with_capacity(parts.iter().product());
        for worker in 0..workers {
            let mut row = vec![0];
            for &parts in times {
                let first = worker * parts / workers;
                let shift = |part| (part + parts - first) % parts;
                row = row
                    .iter()
                    .flat_map(|step| (0..parts).map(move |part| step * parts + shift(part)))
                    .collect();
            }
            step_of.extend(row);
        }
        Rotation { step_of, steps: times.iter().product() }
    }

    /// The step at which a block is worked on, blocks in row-major order.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn step(&self, block: usize) -> usize {
        self.step_of[block]
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The length of the rotation in entries: each step is as long as its heaviest block, and the steps follow
    /// one another. At least the sum of the weights divided by the number of workers.
    ///
    /// # Panics
    /// If there is not one weight per block.
    pub fn cost(&self, weights: &[u64]) -> u64 {
        assert_eq!(weights.len(), self.step_of.len(), "one weight per block");
        let mut longest = vec![0; self.steps];
        for (&step, &weight) in self.step_of.iter().zip(weights) {
            longest[step] = weight.max(longest[step]);
        }
        longest.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_step_differ_in_every_dimension() {
        for parts in [vec![4, 4], vec![3, 6], vec![3, 7], vec![2, 3, 5], vec![3, 3, 3], vec![5]] {
            let rotation = Rotation::new(&parts);
            let key = |mut block: usize| {
                let mut key: Vec<usize> = parts.iter().rev().map(|&p| (block % p, block /= p).0).collect();
                key.reverse();
                key
            };
            let blocks: usize = parts.iter().product();
            for (left, right) in (0..blocks).flat_map(|left| (0..left).map(move |right| (left, right))) {
                if rotation.step(left) == rotation.step(right) {
                    assert!(key(left).iter().zip(key(right)).all(|(a, b)| *a != b), "{parts:?}");
                }
            }
            // Every worker does something at every step.
            let mut counts = vec![0; rotation.steps()];
            (0..blocks).for_each(|block| counts[rotation.step(block)] += 1);
            assert!(counts.iter().all(|&count| count == parts[0]), "{parts:?}");
        }
    }

    #[test]
    fn a_step_is_as_long_as_its_heaviest_block() {
        let rotation = Rotation::new(&[2, 2]);
        // Steps: the diagonal (5, 1), then the other one (2, 3).
        assert_eq!(rotation.cost(&[5, 2, 3, 1]), 5 + 3);
    }
}
