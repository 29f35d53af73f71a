//! The model in files: a folder with matrices that numpy reads, and text.
use super::{Corpus, Options, padded};
use anyhow::{Context, Result};
use hectare_data::new_file;
use hectare_data::npy::Header;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Words of each topic in the list.
const LISTED: usize = 20;
/// Of each document, topics with so large a share.
const SHARE: f32 = 0.01;

/// Finds out whether files can be written into the folder, which is made, before anything is learned in vain.
pub(crate) fn try_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("--save {}", folder.display()))?;
    super::training::try_to_write("--save", &folder.join("topics.npy"))
}

/// Writes `topics.npy` (a row for each topic: how probable the words are), `documents.npy` (a row for each document: its
/// shares of topics), `documents.txt` (the largest of them), `vocabulary.txt` (a word for each column of the topics) and
/// `topics.txt` (the most probable words). Shares are means of the posterior, given all topics.
pub(crate) fn save(
    o: &Options,
    corpus: &Corpus,
    [doc_topic, word_topic]: [&[i32]; 2],
    folder: &Path,
) -> Result<()> {
    let width = padded(o.topics);
    let of_topic = |topic: usize| word_topic.iter().skip(topic).step_by(width);
    let totals: Vec<f32> = (0..o.topics).map(|topic| of_topic(topic).map(|n| *n as f32).sum()).collect();
    let beta = o.beta();
    let beta_sum = beta * corpus.words.len() as f32;
    let probability = |topic: usize, count: i32| (count as f32 + beta) / (totals[topic] + beta_sum);
    let topics = (0..o.topics).flat_map(|topic| of_topic(topic).map(move |n| (topic, *n)));
    let topics = topics.map(|(topic, count)| probability(topic, count));
    matrix(&folder.join("topics.npy"), [o.topics, corpus.words.len()], topics)?;
    let alpha = o.alpha();
    let documents = doc_topic.chunks_exact(width).flat_map(|row| {
        let row = &row[..o.topics];
        let sum = row.iter().sum::<i32>() as f32 + alpha * o.topics as f32;
        row.iter().map(move |count| (*count as f32 + alpha) / sum)
    });
    save_documents([corpus.documents, o.topics], &documents.collect::<Vec<f32>>(), folder)?;
    let lines: String = corpus.words.iter().map(|word| format!("{word}\n")).collect();
    write(&folder.join("vocabulary.txt"), &lines)?;
    let mut list = String::new();
    for topic in 0..o.topics {
        let mut words: Vec<(i32, &String)> = of_topic(topic).copied().zip(&corpus.words).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.0));
        let _ = write!(list, "topic {topic}:");
        for (count, word) in words.iter().take(LISTED) {
            let _ = write!(list, " {word} {:.5}", probability(topic, *count));
        }
        list.push('\n');
    }
    write(&folder.join("topics.txt"), &list)
}

/// Writes `documents.npy`, and `documents.txt`: a line for each document, `topic:share` for topics that have a hundredth, the
/// largest first.
pub(crate) fn save_documents(shape: [usize; 2], shares: &[f32], folder: &Path) -> Result<()> {
    matrix(&folder.join("documents.npy"), shape, shares.iter().copied())?;
    let mut list = String::new();
    for row in shares.chunks_exact(shape[1]) {
        let mut topics: Vec<(usize, f32)> =
            row.iter().copied().enumerate().filter(|topic| topic.1 >= SHARE).collect();
        topics.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> = topics.iter().map(|(topic, share)| format!("{topic}:{share:.4}")).collect();
        list += &(parts.join(" ") + "\n");
    }
    write(&folder.join("documents.txt"), &list)
}

fn write(path: &Path, text: &str) -> Result<()> {
    new_file::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes numbers as NumPy does.
fn matrix(path: &Path, shape: [usize; 2], numbers: impl Iterator<Item = f32>) -> Result<()> {
    let written = new_file::write_by(path, |out| {
        let header = Header { descr: "<f4".into(), fortran_order: false, shape: shape.to_vec() };
        out.write_all(&header.to_bytes())?;
        for number in numbers {
            out.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}
