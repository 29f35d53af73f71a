//! A saved model to continue from: the topic of every token, and the rest of the sampler's state.
//!
//! `--save` writes `tokens.npy` (a row for each token to learn from, document by document: its topic, and the one that is proposed
//! for it) and `training.json`. Of the same documents, with the same words, `--go-on` takes up the state as it was left, and what
//! follows is what would have followed. Of other documents, a token's topic is drawn in proportion to how probable the topics make
//! its word; that of a word that they do not know is any.
use super::fixed::Topics;
use super::options::Sampling;
use super::training::alone;
use super::{Corpus, Options};
use anyhow::{Context, Result, ensure};
use fnv::FnvHasher;
use hectare::orion::array::random::Stream;
use hectare_data::npy::Header;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

/// A token's topic, and the one that is proposed for it.
pub(crate) type Pair = [u16; 2];

const FILES: [&str; 2] = ["tokens.npy", "training.json"];

/// How topics were learned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Training {
    pub(crate) sampler: Sampling,
    pub(crate) topics: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    seed: u64,
    passes: usize,
    /// Of words and tokens, by which the same documents are known again.
    documents: String,
}

impl Training {
    /// That of a folder of `--save`.
    pub(crate) fn load(folder: &Path) -> Result<Training> {
        let path = folder.join(FILES[1]);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let training = serde_json::from_slice(&text);
        training.with_context(|| format!("{}: this is not what --save wrote", path.display()))
    }
}

/// The tokens of a corpus as they were left, or as topics that are known suggest.
#[derive(Clone, Debug)]
pub(crate) struct Learned {
    pub(crate) tokens: Vec<Pair>,
    /// Passes over these tokens.
    pub(crate) passes: usize,
}

impl Learned {
    /// Of the same documents, or of others.
    pub(crate) fn load(o: &Options, corpus: &Corpus, training: &Training, folder: &Path) -> Result<Learned> {
        match training.documents == corpus.mark() {
            true => Learned::restore(o, corpus, training, &folder.join(FILES[0])),
            false => {
                let topics = Topics::load(folder)?;
                ensure!(
                    topics.count == o.topics,
                    "topics.npy has {} topics, and {} has {}",
                    topics.count,
                    FILES[1],
                    o.topics
                );
                Ok(Learned::draw(o, corpus, &topics))
            }
        }
    }

    fn restore(o: &Options, corpus: &Corpus, training: &Training, path: &Path) -> Result<Learned> {
        // Later passes would draw the numbers of earlier ones.
        ensure!(
            o.seed == training.seed,
            "--seed {}: these documents were learned with --seed {}",
            o.seed,
            training.seed
        );
        let (shape, topics) = alone(|w| {
            let tokens = w.npy_file::<u16, 2>(path)?;
            Ok((tokens.shape(), tokens.to_vec(w)?))
        })?;
        let (file, count) = (path.display(), corpus.train.len());
        ensure!(
            shape == [count, 2],
            "{file} has {} rows of {} numbers, and there are {count} tokens",
            shape[0],
            shape[1]
        );
        let too_large = topics.iter().find(|topic| usize::from(**topic) >= o.topics);
        ensure!(
            too_large.is_none(),
            "{file}: a topic {}, and there are {}",
            too_large.copied().unwrap_or(0),
            o.topics
        );
        Ok(Learned { tokens: topics.as_chunks().0.to_vec(), passes: training.passes })
    }

    fn draw(o: &Options, corpus: &Corpus, topics: &Topics) -> Learned {
        let numbers: HashMap<&str, u32> = topics.words.iter().map(String::as_str).zip(0..).collect();
        // How probable topics make each word, added up.
        let sums = |word: &String| -> Option<Vec<f32>> {
            let mut sum = 0.0;
            let row = topics.row(*numbers.get(word.as_str())?).iter();
            let sums = row.map(|chance| {
                sum += chance;
                sum
            });
            Some(sums.collect()).filter(|_| sum > 0.0)
        };
        let sums: Vec<Option<Vec<f32>>> = corpus.words.iter().map(sums).collect();
        let stream = Stream::new(o.seed, "begin");
        let draw = |(number, token): (usize, &super::Token)| {
            let topic = match &sums[token.word as usize] {
                Some(sums) => {
                    let share = stream.uniform(number as u64) as f32 * sums[sums.len() - 1];
                    sums.partition_point(|sum| *sum <= share).min(sums.len() - 1) as u16
                }
                None => super::begin(o, number),
            };
            [topic; 2]
        };
        Learned { tokens: corpus.train.iter().enumerate().map(draw).collect(), passes: 0 }
    }
}

impl Corpus {
    /// The topic that token `number` begins with, and the one that is proposed for it.
    pub(crate) fn begin(&self, o: &Options, number: usize) -> Pair {
        match &self.learned {
            Some(learned) => learned.tokens[number],
            None => [super::begin(o, number); 2],
        }
    }

    /// Passes before these.
    pub(crate) fn passes_before(&self) -> usize {
        self.learned.as_ref().map_or(0, |learned| learned.passes)
    }

    /// Where this goes on from.
    pub(crate) fn said(&self) -> String {
        match self.passes_before() {
            0 => "other documents than the topics were learned from: tokens begin with topics by their words"
                .into(),
            passes => {
                format!("the documents that the topics were learned from: going on after pass {passes}")
            }
        }
    }

    fn mark(&self) -> String {
        let mut hasher = FnvHasher::default();
        self.words.hash(&mut hasher);
        self.train.iter().for_each(|token| [token.doc, token.word].hash(&mut hasher));
        format!("{:016x}", hasher.finish())
    }
}

/// Writes the state that `--go-on` needs beside the topics, with the number of passes so far.
pub(crate) fn save(
    o: &Options,
    corpus: &Corpus,
    tokens: &[Pair],
    passes: usize,
    folder: &Path,
) -> Result<()> {
    let header = Header { descr: "<u2".into(), fortran_order: false, shape: vec![tokens.len(), 2] };
    let mut bytes = header.to_bytes();
    bytes.extend(tokens.as_flattened().iter().flat_map(|topic| topic.to_le_bytes()));
    let training = Training {
        sampler: o.sampler,
        topics: o.topics,
        alpha: o.alpha(),
        beta: o.beta(),
        seed: o.seed,
        passes,
        documents: corpus.mark(),
    };
    let text = serde_json::to_string_pretty(&training)? + "\n";
    for (name, bytes) in FILES.into_iter().zip([bytes, text.into_bytes()]) {
        let path = folder.join(name);
        hectare_data::new_file::write(&path, bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
