//! Topics that were learned before, and stay: what shares documents have of them.
//!
//! Shares are found by expectation and maximization: in a pass, each word of a document counts for all topics, in
//! proportion to how probable the document's shares make it there, and the counts and α give the next shares. Nothing is
//! drawn, and the bits are the same on any number of workers.
use super::training::text::text;
use super::training::{self, Curve, alone};
use super::{ADVICE, Corpus, MEASURE, Options, Token, files, uniform};
use anyhow::{Context as _, ensure};
use hectare::DistArray;
use hectare::orion::{Context, Result, parallel_for};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

/// How probable topics make words.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    pub(crate) words: Vec<String>,
    pub(crate) count: usize,
    /// A row for each word, with a number for each topic.
    rows: Vec<f32>,
}

impl Topics {
    /// Those of a folder that `--save` wrote.
    pub(crate) fn load(folder: &Path) -> anyhow::Result<Topics> {
        let [file, list] = ["topics.npy", "vocabulary.txt"].map(|name| folder.join(name));
        let ([count, columns], matrix) = alone(|w| {
            let matrix = w.npy_file_as::<f32, 2>(&file)?;
            Ok((matrix.shape(), matrix.to_vec(w)?))
        })?;
        let words: Vec<String> = text(&list)?.lines().map(|word| word.trim().to_owned()).collect();
        let (file, found) = (file.display(), words.len());
        ensure!(
            found == columns && count > 0,
            "{file} has {count} rows of {columns} numbers, and {} {found} words",
            list.display()
        );
        let is_good = |x: &f32| *x >= 0.0 && x.is_finite();
        ensure!(matrix.iter().all(is_good), "{file}: a number is no probability of a word");
        let rows = (0..columns).flat_map(|word| matrix.iter().skip(word).step_by(columns)).copied().collect();
        Ok(Topics { words, count, rows })
    }

    /// How probable the topics make a word.
    pub(crate) fn row(&self, word: u32) -> &[f32] {
        &self.rows[word as usize * self.count..][..self.count]
    }

    /// The probability of a word in a document of these shares.
    fn chance(&self, shares: &[f32], token: Token) -> f32 {
        shares.iter().zip(self.row(token.word)).map(|(share, word)| share * word).sum()
    }

    /// The next shares of a document with these tokens; `counts` is room for as many numbers.
    fn improve(&self, alpha: f32, tokens: &[Token], shares: &mut [f32], counts: &mut [f32]) {
        counts.fill(alpha);
        for token in tokens {
            // Words that no topic has count for none.
            let part = 1.0 / self.chance(shares, *token).max(f32::MIN_POSITIVE);
            for ((count, share), word) in counts.iter_mut().zip(&*shares).zip(self.row(token.word)) {
                *count += share * word * part;
            }
        }
        let sum: f32 = counts.iter().sum();
        shares.iter_mut().zip(&*counts).for_each(|(share, count)| *share = count / sum);
    }

    /// Minus the logarithms of the probabilities of words, added up.
    fn nats(&self, shares: &[f32], tokens: &[Token]) -> f64 {
        let nats = |token: &Token| -f64::from(self.chance(shares, *token).max(f32::MIN_POSITIVE)).ln();
        tokens.iter().map(nats).sum()
    }
}

impl Corpus {
    /// The same documents, with these words alone, by their numbers there.
    pub(crate) fn in_words(self, words: &[String], of: &Path, from: &str) -> anyhow::Result<Corpus> {
        let numbers: HashMap<&str, u32> = words.iter().map(String::as_str).zip(0..).collect();
        let known: Vec<Option<u32>> =
            self.words.iter().map(|word| numbers.get(word.as_str()).copied()).collect();
        let renamed = |tokens: &[Token]| -> Vec<Token> {
            let known = |token: &Token| Some(Token { word: known[token.word as usize]?, ..*token });
            tokens.iter().filter_map(known).collect()
        };
        let (train, held_out) = (renamed(&self.train), renamed(&self.held_out));
        ensure!(
            !train.is_empty() && !held_out.is_empty(),
            "{from}: its documents have hardly a word of those in {}",
            of.display()
        );
        Ok(Corpus { words: words.to_vec(), train, held_out, ..self })
    }
}

/// Tokens by document.
#[derive(Debug)]
struct ByDocument<'c> {
    tokens: &'c [Token],
    starts: Vec<usize>,
}

impl<'c> ByDocument<'c> {
    /// Tokens in the order of documents.
    fn new(documents: usize, tokens: &'c [Token]) -> ByDocument<'c> {
        let first = |doc: usize| tokens.partition_point(|token| (token.doc as usize) < doc);
        ByDocument { tokens, starts: (0..=documents).map(first).collect() }
    }

    fn of(&self, doc: usize) -> &'c [Token] {
        &self.tokens[self.starts[doc]..self.starts[doc + 1]]
    }
}

/// Finds the shares of documents. Collective.
pub(crate) fn find(w: &mut Context<'_>, o: &Options, corpus: &Corpus, topics: &Topics) -> Result<Curve> {
    let [learned, held_out] = [&corpus.train, &corpus.held_out].map(|t| ByDocument::new(corpus.documents, t));
    let mut shares: DistArray<f32, 2> =
        w.fill([corpus.documents, topics.count], 1.0 / topics.count as f32)?.named("shares");
    let (room, alpha) = (RefCell::new(vec![0.0; topics.count]), o.alpha());
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus));
    for _ in 0..o.passes() {
        curve.begin();
        parallel_for!(w, unordered, write shares; for d in 0..corpus.documents {
            topics.improve(alpha, learned.of(d), shares.row_mut(d), &mut room.borrow_mut());
        })?;
        curve.end();
        let nats = parallel_for!(w, unordered, read shares, sum nats: f64; for d in 0..corpus.documents {
            nats += topics.nats(shares.row(d), held_out.of(d));
        })?;
        if !curve.push(&o.run, None, (nats / corpus.held_out.len() as f64).exp(), Some(w))? {
            break;
        }
    }
    if let Some(folder) = &o.save {
        let found = w.root(|| shares.to_vec(w)).unwrap_or(Ok(Vec::new()));
        training::at_root(w, || files::save_documents([corpus.documents, topics.count], &found?, folder))?;
    }
    training::explain(w, &o.run)?;
    Ok(curve)
}

/// The same without Hectare.
pub(crate) fn find_serially(o: &Options, corpus: &Corpus, topics: &Topics) -> anyhow::Result<Curve> {
    let [learned, held_out] = [&corpus.train, &corpus.held_out].map(|t| ByDocument::new(corpus.documents, t));
    let mut shares = vec![1.0 / topics.count as f32; corpus.documents * topics.count];
    let mut room = vec![0.0; topics.count];
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus));
    for _ in 0..o.passes() {
        curve.begin();
        for (doc, shares) in shares.chunks_exact_mut(topics.count).enumerate() {
            topics.improve(o.alpha(), learned.of(doc), shares, &mut room);
        }
        curve.end();
        let rows = shares.chunks_exact(topics.count).enumerate();
        let nats: f64 = rows.map(|(doc, shares)| topics.nats(shares, held_out.of(doc))).sum();
        if !curve.push(&o.run, None, (nats / corpus.held_out.len() as f64).exp(), None)? {
            break;
        }
    }
    if let Some(folder) = &o.save {
        files::save_documents([corpus.documents, topics.count], &shares, folder)?;
    }
    Ok(curve)
}

/// The program with `--load`.
pub(crate) fn run(o: &Options, folder: &Path) -> anyhow::Result<()> {
    let topics = Topics::load(folder).with_context(|| format!("--load {}", folder.display()))?;
    let corpus = Corpus::load(o)?.in_words(&topics.words, &folder.join("vocabulary.txt"), &o.origin())?;
    let (tokens, documents) = (corpus.train.len(), corpus.documents);
    training::say(format_args!("{tokens} known tokens in {documents} documents, {} topics", topics.count));
    let parallel = |workers, _| {
        let all = hectare::run(workers, |w| {
            training::same_files(w, &o.files())?;
            find(w, o, &corpus, &topics)
        });
        Ok(all?.swap_remove(0))
    };
    o.run.train(&[], || find_serially(o, &corpus, &topics), parallel)
}
