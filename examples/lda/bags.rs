//! Bags of words in files: how often which word is in a document, not where.
use super::training::text::{Documents, Keep, frequent, text};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::str::FromStr;

/// Tokens have numbers of 32 bits.
const MOST_TOKENS: u64 = u32::MAX as u64;
/// Documents and words are numbered without gaps, and each number and each word that is counted costs memory: greater ones are slips.
const MOST: u64 = 1 << 26;

/// Documents in the format of `lda-c` (Blei, 2003): a line for each, the number of different words and then
/// `word:count` for each of them; words are lines of the vocabulary, from 0.
pub(crate) fn lda_c(path: &Path, vocabulary: Option<&Path>, keep: Keep) -> Result<Documents> {
    let (text, mut documents, mut bag) = (text(path)?, Vec::new(), Bag::default());
    for (at, line) in (1..).zip(text.lines()) {
        let document = lda_c_line(line, &mut bag).with_context(|| format!("{}:{at}", path.display()))?;
        documents.push(document);
    }
    ensure!(!documents.is_empty(), "{}: the file is empty", path.display());
    let words = match vocabulary {
        Some(vocabulary) => {
            let words = lines(vocabulary)?;
            let (needed, found) = (bag.words, words.len() as u64);
            ensure!(
                found >= needed,
                "{} has {found} words, but {} counts word {} (from 0)",
                vocabulary.display(),
                path.display(),
                needed - 1
            );
            words
        }
        None => (0..bag.words).map(|word| word.to_string()).collect(),
    };
    Ok(frequent(words, documents, keep))
}

fn lda_c_line(line: &str, bag: &mut Bag) -> Result<Vec<u32>> {
    let wanted = "expected a document of LDA-C, the number of different words and word:count for each";
    let mut parts = line.split_ascii_whitespace();
    let Some(different) = parts.next() else { bail!("{wanted}, found an empty line") };
    let different: usize = number(different).with_context(|| wanted)?;
    let (mut document, mut found) = (Vec::new(), 0);
    for part in parts {
        let Some((word, count)) = part.split_once(':') else { bail!("{wanted}, found {part:?}") };
        let (word, count) = (number(word)?, number(count)?);
        ensure!(word < MOST, "word {word}: the last one that is possible is {}", MOST - 1);
        bag.add(&mut document, word, count)?;
        found += 1;
    }
    ensure!(found == different, "the line says {different} words and counts {found}: was it cut off?");
    Ok(document)
}

/// Documents in the format of UCI's bags of words: three lines with the numbers of documents, words and counts, then
/// a line `document word count` for each count; words are lines of the vocabulary, and all begin at 1.
pub(crate) fn uci(path: &Path, vocabulary: Option<&Path>, keep: Keep) -> Result<Documents> {
    let text = text(path)?;
    ensure!(!text.trim().is_empty(), "{}: the file is empty", path.display());
    let mut lines_at = (1usize..).zip(text.lines());
    let mut header = [0u64; 3];
    for (value, what) in header.iter_mut().zip(["documents", "words", "counts"]) {
        let (at, line) = lines_at.next().unwrap_or((text.lines().count() + 1, ""));
        *value = number(line.trim()).ok().with_context(|| {
            format!(
                "{}:{at}: expected the number of {what} alone in this line, found {line:?}: the header of UCI's bags of words is \
                 three lines with the numbers of documents, words and counts",
                path.display()
            )
        })?;
    }
    let [count, words, counts] = header;
    for (what, value) in [("documents", count), ("words", words)] {
        ensure!(value <= MOST, "{}: {value} {what}: {MOST} at most", path.display());
    }
    let (mut documents, mut bag, mut found) = (Vec::new(), Bag::default(), 0u64);
    for (at, line) in lines_at.filter(|(_, line)| !line.trim().is_empty()) {
        uci_line(line, [count, words], &mut documents, &mut bag)
            .with_context(|| format!("{}:{at}", path.display()))?;
        found += 1;
    }
    ensure!(
        found == counts,
        "{}: its third line tells of {counts} counts, and it has {found}: was it cut off?",
        path.display()
    );
    documents.resize(count as usize, Vec::new());
    let names = match vocabulary {
        Some(vocabulary) => {
            let names = lines(vocabulary)?;
            let (known, file) = (names.len(), path.display());
            ensure!(
                known as u64 == words,
                "{} has {known} words, and {file} tells of {words}",
                vocabulary.display()
            );
            names
        }
        None => (1..=bag.words).map(|word| word.to_string()).collect(),
    };
    Ok(frequent(names, documents, keep))
}

fn uci_line(line: &str, most: [u64; 2], documents: &mut Vec<Vec<u32>>, bag: &mut Bag) -> Result<()> {
    let parts: Vec<&str> = line.split_ascii_whitespace().collect();
    let [document, word, count] = parts[..] else {
        bail!("expected the numbers of a document and a word, and a count, found {line:?}")
    };
    let [document, word, count] = [number(document)?, number(word)?, number::<u64>(count)?];
    for (what, value, most) in [("document", document, most[0]), ("word", word, most[1])] {
        ensure!((1..=most).contains(&value), "{what} {value}: 1 to {most} by the file's header");
    }
    let place = document as usize - 1;
    if documents.len() <= place {
        documents.resize(place + 1, Vec::new());
    }
    bag.add(&mut documents[place], word - 1, count)
}

/// The counts of the document that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Bag {
    tokens: u64,
    /// The greatest number of a word, and 1.
    words: u64,
}

impl Bag {
    /// Adds a word to a document `count` times.
    fn add(&mut self, document: &mut Vec<u32>, word: u64, count: u64) -> Result<()> {
        ensure!(count > 0, "word {word} is counted 0 times");
        ensure!(count <= MOST_TOKENS - self.tokens, "more than {MOST_TOKENS} words in all");
        ensure!(count <= MOST, "word {word} is counted {count} times: {MOST} at most");
        self.tokens += count;
        self.words = self.words.max(word + 1);
        document.extend(std::iter::repeat_n(word as u32, count as usize));
        Ok(())
    }
}

fn number<T: FromStr>(text: &str) -> Result<T> {
    text.parse().ok().with_context(|| format!("expected a number from 0, found {text:?}"))
}

/// The words of a vocabulary, one a line.
fn lines(path: &Path) -> Result<Vec<String>> {
    let words: Vec<String> = text(path)?.lines().map(|line| line.trim().to_owned()).collect();
    ensure!(!words.is_empty(), "{}: the file is empty", path.display());
    Ok(words)
}
