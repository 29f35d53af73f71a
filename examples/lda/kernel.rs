//! One draw of collapsed Gibbs sampling (Griffiths and Steyvers, 2004): a topic for a token, given those of all others.
//!
//! The weight of topic `k` is `(doc[k] + α[k]) (word[k] + β) / (total[k] + Vβ)`, with the counts of all other tokens. All
//! weights are computed, in lanes, and one is drawn by inversion: at 100 topics a vector unit does that faster than
//! samplers that keep lists of the non-zero counts (see `docs/src/applications.md`), and it is exact. Which instructions run
//! is decided once; the order of additions, and so every bit, is the same with all of them.
use super::training::Instructions;

/// Topics in a lane group; rows of counts are whole groups.
pub(crate) const LANES: usize = 16;
/// The most topics that the table of running sums has room for.
pub(crate) const MOST: usize = 4096;

/// A row of counts is so long.
pub(crate) fn padded(topics: usize) -> usize {
    topics.next_multiple_of(LANES)
}

/// Running sums by lane, in whole cache lines: on the stack they would lie as the callers' frames happen to fall, and groups
/// across two lines cost a third of the speed.
#[repr(align(64))]
struct Table<const GROUPS: usize>([[f32; LANES]; GROUPS]);

/// The parameters of a draw beside the counts.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    topics: usize,
    /// Zero behind the last topic, so that nothing there has a weight.
    alpha: Vec<f32>,
    beta: f32,
    /// β times the number of words.
    beta_sum: f32,
    instructions: Instructions,
}

impl Sampler {
    /// For symmetric priors.
    ///
    /// # Panics
    /// Unless there are 1 to [`MOST`] topics.
    pub(crate) fn new(topics: usize, words: usize, alpha: f32, beta: f32) -> Sampler {
        assert!((1..=MOST).contains(&topics));
        let mut alphas = vec![alpha; topics];
        alphas.resize(padded(topics), 0.0);
        let beta_sum = (f64::from(beta) * words as f64) as f32;
        Sampler { topics, alpha: alphas, beta, beta_sum, instructions: Instructions::all()[0] }
    }

    /// The same with other instructions, which have to be among [`Instructions::all`].
    #[allow(dead_code)] // for tests
    pub(crate) fn with(mut self, instructions: Instructions) -> Sampler {
        assert!(Instructions::all().contains(&instructions));
        self.instructions = instructions;
        self
    }

    /// Draws anew the topic of a token that has topic `old`, and moves it in the counts of its document and its word; in
    /// those of all the caller does. `random` are 64 random bits.
    ///
    /// # Panics
    /// If rows are shorter than [`padded`] says or `old` is no topic.
    #[inline(always)]
    pub(crate) fn draw(
        &self,
        doc: &mut [i32],
        word: &mut [i32],
        totals: &[i32],
        old: usize,
        random: u64,
    ) -> usize {
        let unit = (random >> 40) as f32 * (1.0 / (1u64 << 24) as f32);
        // The table is as long as it has to be: to clear it costs time.
        let new = match self.alpha.len() / LANES {
            ..=8 => self.choose_with::<8>([doc, word, totals], old, unit),
            9..=32 => self.choose_with::<32>([doc, word, totals], old, unit),
            _ => self.choose_with::<{ MOST / LANES }>([doc, word, totals], old, unit),
        };
        if new != old {
            for row in [doc, word] {
                row[old] -= 1;
                row[new] += 1;
            }
        }
        new
    }

    #[inline(always)]
    fn choose_with<const GROUPS: usize>(&self, rows: [&[i32]; 3], old: usize, unit: f32) -> usize {
        match self.instructions {
            Instructions::Baseline => self.choose::<GROUPS>(rows, old, unit),
            // SAFETY: `Instructions::all`, where they come from, has found that the processor has them.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { self.choose_avx2::<GROUPS>(rows, old, unit) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn choose_avx2<const GROUPS: usize>(&self, rows: [&[i32]; 3], old: usize, unit: f32) -> usize {
        self.choose::<GROUPS>(rows, old, unit)
    }

    /// The topic below which a share `unit` of all weights lies. Topics count in the order of their lanes.
    #[inline(always)]
    fn choose<const GROUPS: usize>(&self, [doc, word, totals]: [&[i32]; 3], old: usize, unit: f32) -> usize {
        let groups = (self.alpha.len() / LANES).min(GROUPS);
        let Table(below) = &mut Table([[0.0f32; LANES]; GROUPS]);
        let mut sums = [0.0f32; LANES];
        let rows = doc.as_chunks::<LANES>().0.iter().zip(word.as_chunks::<LANES>().0);
        let rows = rows.zip(totals.as_chunks::<LANES>().0).zip(self.alpha.as_chunks::<LANES>().0);
        for (group, (((doc, word), totals), alpha)) in rows.enumerate() {
            for lane in 0..LANES {
                // The token itself does not count.
                let own = (group * LANES + lane == old) as i32;
                let count = |row: &[i32; LANES]| (row[lane] - own) as f32;
                let weight = (count(doc) + alpha[lane]) * (count(word) + self.beta);
                sums[lane] += weight / (count(totals) + self.beta_sum);
            }
            below[group] = sums;
        }
        // Down a tree over the lanes, then along the groups of one lane.
        let s8: [f32; 8] = std::array::from_fn(|at| sums[at] + sums[at + 8]);
        let s4: [f32; 4] = std::array::from_fn(|at| s8[at] + s8[at + 4]);
        let s2 = [s4[0] + s4[2], s4[1] + s4[3]];
        let mut rest = unit * (s2[0] + s2[1]);
        let mut lane = 0;
        let mut descend = |at: usize, left: f32| {
            let right = rest >= left;
            rest -= if right { left } else { 0.0 };
            usize::from(right) * at
        };
        lane += descend(1, s2[0]);
        lane += descend(2, s4[lane]);
        lane += descend(4, s8[lane]);
        lane += descend(8, sums[lane]);
        let group = below[..groups].iter().filter(|below| below[lane] <= rest).count();
        // Rounding may leave a little more than all weights.
        (group * LANES + lane).min(self.topics - 1)
    }

    /// Minus the logarithm of the probability of a word in a document, by the means of the posterior given all topics.
    pub(crate) fn surprise(&self, doc: &[i32], word: &[i32], totals: &[i32]) -> f64 {
        let (mut length, mut probability) = (0.0f64, 0.0f64);
        for (((doc, word), total), alpha) in doc.iter().zip(word).zip(totals).zip(&self.alpha) {
            let of_topic = (*word as f32 + self.beta) / (*total as f32 + self.beta_sum);
            length += f64::from(*doc as f32 + alpha);
            probability += f64::from((*doc as f32 + alpha) * of_topic);
        }
        -(probability / length).ln()
    }
}
