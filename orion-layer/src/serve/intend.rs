//! Keys that a worker says by hand it will use.

/// The intended keys, and the number of passes that are left.
#[derive(Debug, Default)]
pub(super) struct Intents {
    list: Vec<(Vec<u32>, usize)>,
    /// Counts changes.
    pub(super) generation: u64,
}

impl Intents {
    pub(super) fn add(&mut self, keys: Vec<u32>, passes: usize) {
        if passes > 0 && !keys.is_empty() {
            self.list.push((keys, passes));
            self.generation += 1;
        }
    }

    pub(super) fn end_pass(&mut self) {
        let before = self.list.len();
        self.list.iter_mut().for_each(|(_, passes)| *passes -= 1);
        self.list.retain(|(_, passes)| *passes > 0);
        if self.list.len() != before {
            self.generation += 1;
        }
    }

    /// All keys, ascending, each once.
    pub(super) fn keys(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = self.list.iter().flat_map(|(keys, _)| keys).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intents_pass() {
        let mut intents = Intents::default();
        intents.add(vec![5, 3, 5], 2);
        intents.add(vec![9], 1);
        intents.add(vec![1], 0);
        assert_eq!((intents.keys(), intents.generation), (vec![3, 5, 9], 2));
        intents.end_pass();
        assert_eq!((intents.keys(), intents.generation), (vec![3, 5], 3));
        intents.end_pass();
        assert_eq!((intents.keys(), intents.generation), (vec![], 4));
    }
}
