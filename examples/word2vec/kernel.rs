//! Skip-gram with negative sampling (Mikolov et al., 2013), one sentence at a time.
//!
//! The words drawn as negatives are shared by all words in the window of one word (Ji et al., 2016): so a row is read
//! once for many products, and written once for many changes. Each product is otherwise as in `word2vec.c`.
use super::{Options, Text};
use hectare::orion::array::random::Stream;
use hectare::orion::dot;

/// Rows are padded with zeros to a multiple of this many numbers.
pub(crate) const LANES: usize = 16;
/// Logits beyond this count as this.
const MOST: f32 = 6.0;
/// Steps of the table from 0 to [`MOST`] and as many below.
const STEPS: usize = 512;

/// The state of learning beside the rows.
#[derive(Debug)]
pub(crate) struct Learner<'t> {
    o: &'t Options,
    text: &'t Text,
    /// How long a row is.
    pub(crate) width: usize,
    /// The logistic function and minus its logarithm.
    table: Vec<(f32, f32)>,
    wide: bool,
}

impl<'t> Learner<'t> {
    pub(crate) fn new(o: &'t Options, text: &'t Text) -> Learner<'t> {
        let at = |step: usize| (step as f32 + 0.5) / STEPS as f32 * MOST - MOST;
        let table = (0..2 * STEPS).map(|step| {
            let probability = 1.0 / (1.0 + (-at(step)).exp());
            (probability, -probability.ln())
        });
        #[cfg(target_arch = "x86_64")]
        let wide = std::is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let wide = false;
        Learner { o, text, width: width(o), table: table.collect(), wide }
    }

    /// Sentence `number` in pass `pass`, thinned out.
    pub(crate) fn sentence(&self, pass: usize, number: usize) -> Sentence<'_> {
        let (o, count) = (self.o, self.text.sentences.len());
        let turn = pass * count + number;
        let numbers = Stream::new(o.seed, "sentences").child(turn as u64);
        let kept = |&(at, word): &(u64, &u32)| numbers.bits(at) >> 32 < self.text.keep[*word as usize];
        let words = (0..).zip(&self.text.sentences[number]).filter(kept).map(|(_, word)| *word as usize);
        Sentence {
            learner: self,
            words: words.collect(),
            next: 0,
            near: Vec::with_capacity(2 * o.window),
            targets: Vec::with_capacity(1 + o.negative),
            rows: vec![0.0; (1 + o.negative) * self.width],
            along: vec![0.0; 1 + o.negative],
            numbers: numbers.child(0),
            turn: 0,
            rate: o.rate * (1.0 - turn as f32 / (o.passes * count) as f32).max(0.004),
            products: 0,
        }
    }

    fn draw(&self, random: u64) -> usize {
        let at = ((random >> 32) * self.text.noise.len() as u64) >> 32;
        let (chance, other) = self.text.noise[at as usize];
        if random as u32 <= chance { at as usize } else { other as usize }
    }

    /// One input against all outputs, the first of which is right; both change. `along` is room for how far each output
    /// is off. Minus the logarithm of the probability of what was right.
    #[inline(always)]
    fn step(&self, input: &mut [f32], outputs: &mut [f32], along: &mut [f32], rate: f32) -> f64 {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `wide` says that the processor has AVX2.
            return unsafe { self.step_avx2(input, outputs, along, rate) };
        }
        self.step_by_lanes(input, outputs, along, rate)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn step_avx2(&self, input: &mut [f32], outputs: &mut [f32], along: &mut [f32], rate: f32) -> f64 {
        self.step_by_lanes(input, outputs, along, rate)
    }

    #[inline(always)]
    fn step_by_lanes(&self, input: &mut [f32], outputs: &mut [f32], along: &mut [f32], rate: f32) -> f64 {
        let input = input.as_chunks_mut::<LANES>().0;
        let (outputs, groups) = (outputs.as_chunks_mut::<LANES>().0, input.len());
        let mut nats = 0.0;
        for (number, (output, along)) in outputs.chunks_exact(groups).zip(along.iter_mut()).enumerate() {
            let logit = dot(input.as_flattened(), output.as_flattened());
            let (right, sign) = if number == 0 { (1.0, 1.0) } else { (0.0, -1.0) };
            let look = |logit: f32| {
                let step = (logit + MOST) * (STEPS as f32 / MOST);
                self.table[(step.max(0.0) as i32 as usize).min(2 * STEPS - 1)]
            };
            nats += look(sign * logit).1;
            *along = rate * (right - look(logit).0);
        }
        // The outputs differ from each other, so that all may change at once.
        for (group, a) in input.iter_mut().enumerate() {
            let mut change = [0.0f32; LANES];
            for (along, b) in along.iter().zip(outputs[group..].iter_mut().step_by(groups)) {
                for lane in 0..LANES {
                    change[lane] += along * b[lane];
                    b[lane] += along * a[lane];
                }
            }
            for lane in 0..LANES {
                a[lane] += change[lane];
            }
        }
        f64::from(nats)
    }
}

/// A sentence on its way: word by word, with the rows of what that word is told from.
#[derive(Debug)]
pub(crate) struct Sentence<'l> {
    learner: &'l Learner<'l>,
    words: Vec<usize>,
    next: usize,
    near: Vec<usize>,
    targets: Vec<usize>,
    rows: Vec<f32>,
    along: Vec<f32>,
    numbers: Stream,
    turn: u64,
    rate: f32,
    products: u64,
}

impl Sentence<'_> {
    /// How many words.
    pub(crate) fn len(&self) -> u64 {
        self.words.len() as u64
    }

    /// How many products of rows there were.
    pub(crate) fn products(&self) -> u64 {
        self.products
    }

    fn random(&mut self) -> u64 {
        self.turn += 1;
        self.numbers.bits(self.turn)
    }

    /// Goes to the next word: chooses what is near, and what it is told from. False at the end.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(word) = self.words.get(self.next).copied() else { return false };
        let (o, at) = (self.learner.o, self.next);
        // Near words count more, by a window of random size.
        let window = 1 + (self.random() % o.window as u64) as usize;
        let around = at.saturating_sub(window)..self.words.len().min(at + window + 1);
        self.near.clear();
        self.near.extend(around.filter(|other| *other != at).map(|other| self.words[other]));
        self.targets.clear();
        self.targets.push(word);
        for _ in 0..o.negative {
            let random = self.random();
            let drawn = self.learner.draw(random);
            // A word that is drawn twice would be written twice.
            if !self.targets.contains(&drawn) {
                self.targets.push(drawn);
            }
        }
        self.products += (self.near.len() * self.targets.len()) as u64;
        self.next += 1;
        true
    }

    /// The word and those drawn, and room for their rows of the output matrix.
    pub(crate) fn targets(&mut self) -> impl Iterator<Item = (usize, &mut [f32])> {
        self.targets.iter().copied().zip(self.rows.chunks_exact_mut(self.learner.width))
    }

    /// How many words are near.
    pub(crate) fn near(&self) -> usize {
        self.near.len()
    }

    /// One of them.
    pub(crate) fn near_word(&self, at: usize) -> usize {
        self.near[at]
    }

    /// A step with the row of a near word in the input matrix: it and the rows of the targets change. Minus the
    /// logarithm of the probability of what was right.
    #[inline(always)]
    pub(crate) fn step(&mut self, row: &mut [f32]) -> f64 {
        let count = self.targets.len();
        let outputs = &mut self.rows[..count * self.learner.width];
        self.learner.step(row, outputs, &mut self.along[..count], self.rate)
    }
}

/// How long a row is.
pub(crate) fn width(o: &Options) -> usize {
    o.dimension.next_multiple_of(LANES)
}

/// The vectors before the first step: between plus and minus half a part of the dimension.
pub(crate) fn begin(o: &Options, words: usize) -> Vec<f32> {
    let stream = Stream::new(o.seed, "vectors");
    let (width, half) = (width(o), 0.5 / o.dimension as f32);
    let mut vectors = vec![0.0; words * width];
    for (word, row) in vectors.chunks_exact_mut(width).enumerate() {
        stream.fill_uniform(&mut row[..o.dimension], (word * o.dimension) as u64, -half..half);
    }
    vectors
}
