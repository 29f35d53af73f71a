//! Documents as lists of words, from text or generated.
use anyhow::{Context, Result};
use hectare::orion::array::random::Stream;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Topics of generated documents; word `w` belongs to topic `w % PLANTED`.
pub(crate) const PLANTED: usize = 50;

/// Which words of a text count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Letters, at least.
    pub(crate) letters: usize,
    /// Times that the word is in the text, at least.
    pub(crate) min_count: usize,
    /// Not so many of the most frequent ones.
    pub(crate) skip_top: usize,
}

/// The parameters of generated text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generated {
    /// How many.
    pub(crate) documents: usize,
    /// Different words.
    pub(crate) words: usize,
    /// The mean number of words in a document.
    pub(crate) length: usize,
    /// Of Zipf's law.
    pub(crate) exponent: f64,
    /// Topics in a document.
    pub(crate) topics: u64,
    /// So far from a document's topic are those, around a ring, whose words it has also, the farther the fewer; 0 for none.
    pub(crate) spread: u64,
}

/// Words in the order of their frequency, and documents of them.
pub(crate) type Documents = (Vec<String>, Vec<Vec<u32>>);

/// A file, whose paragraphs are the documents, or a folder, whose files are.
pub(crate) fn read(path: &Path, keep: Keep) -> Result<Documents> {
    let lossy = |path: &Path| -> Result<String> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut texts = Vec::new();
    if path.is_dir() {
        for file in files(path)? {
            texts.push(lossy(&file)?);
        }
    } else {
        texts = paragraphs(&lossy(path)?);
    }
    let split = |text: &str| -> Vec<String> {
        let words =
            text.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() >= keep.letters);
        words.map(str::to_lowercase).collect()
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    texts.iter().flat_map(|text| split(text)).for_each(|word| *counts.entry(word).or_default() += 1);
    let mut words: Vec<(String, usize)> =
        counts.into_iter().filter(|word| word.1 >= keep.min_count).collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let words: Vec<String> = words.into_iter().skip(keep.skip_top).map(|word| word.0).collect();
    let numbers: HashMap<&str, u32> = words.iter().map(String::as_str).zip(0..).collect();
    let known = |text: &String| split(text).iter().filter_map(|w| numbers.get(w.as_str()).copied()).collect();
    let documents = texts.iter().map(known).filter(|words: &Vec<u32>| !words.is_empty()).collect();
    Ok((words, documents))
}

/// Parts between empty lines.
fn paragraphs(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    lines.split(|line| line.trim().is_empty()).map(|lines| lines.join("\n")).collect()
}

/// All files below a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files.extend(self::files(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}

/// Documents with a few planted topics each. Ranks of words follow Zipf's law (density proportional to `r^-s`); words of
/// rank `r` belong to topic `r % PLANTED`. A document takes 0.7 of its words from the words of its own topics, the
/// others from all. Topics lie on a ring, and with a `spread` those near a document's own count among them.
pub(crate) fn generate(o: Generated) -> Documents {
    let power = 1.0 - o.exponent;
    let rank = |unit: f64, ranks: usize| {
        let rank = ((((ranks + 1) as f64).powf(power) - 1.0) * unit + 1.0).powf(1.0 / power);
        (rank as usize - 1).min(ranks - 1)
    };
    let stream = Stream::new(7, "documents");
    let topics = PLANTED.min(o.words);
    // The difference of two numbers of 0 to `spread`, by bits that the topic does not depend on much.
    let astray = |bits: u64| match o.spread {
        0 => 0,
        spread => {
            let [a, b] = [bits & 0xffff, bits >> 16 & 0xffff].map(|part| (part * (spread + 1)) >> 16);
            (topics as u64 + a - b) as usize
        }
    };
    let document = |doc: usize| -> Vec<u32> {
        let numbers = stream.child(doc as u64);
        let own: Vec<usize> = (0..o.topics).map(|at| numbers.below(at, topics as u64) as usize).collect();
        let length = o.length / 2 + numbers.below(o.topics, o.length as u64 + 1) as usize;
        let word = |at: u64| match numbers.below(at, 10) {
            ..7 => {
                let topic = own[numbers.below(at + 1, o.topics) as usize];
                let topic = (topic + astray(numbers.bits(at + 1))) % topics;
                let ranks = (o.words - topic).div_ceil(topics);
                rank(numbers.uniform(at + 2), ranks) * topics + topic
            }
            _ => rank(numbers.uniform(at + 2), o.words),
        };
        (0..length as u64).map(|at| word(o.topics + 1 + 3 * at) as u32).collect()
    };
    let words = (0..o.words).map(|word| format!("w{word}t{}", word % topics)).collect();
    (words, (0..o.documents).map(document).collect())
}
