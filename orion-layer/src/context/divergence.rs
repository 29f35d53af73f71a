//! Divergence of programs: a fingerprint of the arguments goes with every frame of a collective call (`Mailbox::set_fingerprint`), so
//! that the first exchange finds who says something else, without one more. Then all exchange the words.
use super::{Context, Outcome};
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::Rank;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The number of blocks of values whose sums are compared before single values are.
const BLOCKS: usize = 1024;

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hash = FxHasher::default();
    value.hash(&mut hash);
    hash.finish()
}

/// The words of the first list that the second has not.
fn only<'a>(list: &'a [String], other: &[String]) -> Vec<&'a str> {
    list.iter().filter(|word| !other.contains(word)).map(String::as_str).collect()
}

fn place(site: Site, words: &[&str]) -> String {
    match words {
        [] => format!("{site} without that"),
        words => format!("{site} with {}", words.join(", ")),
    }
}

impl Context<'_> {
    /// The arguments of a permutation of a dimension.
    pub(crate) fn words_of_permutation(&self, dim: usize, seed: u64) -> Vec<String> {
        vec![format!("dimension {dim}"), format!("seed {seed}"), format!("set_seed({})", self.seed())]
    }

    /// Makes a collective call with these arguments: [`Error::Diverged`] if another worker has others.
    pub(crate) fn with_arguments<R>(
        &mut self,
        site: Site,
        mut words: Vec<String>,
        call: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        words.extend(self.checking.then(|| "check_loops".to_owned()));
        let before = self.set_fingerprint(hash(&words));
        let result = call(self);
        let fingerprint = self.set_fingerprint(before);
        match self.take_divergence() {
            false => result,
            true => Err(self.divergence_error(site, fingerprint, words, "")),
        }
    }

    /// After an exchange that found different fingerprints: what differs, `unsaid` if no word does. Collective.
    pub(crate) fn divergence_error(
        &mut self,
        site: Site,
        fingerprint: u64,
        words: Vec<String>,
        unsaid: &str,
    ) -> Error {
        let mine = (fingerprint, words);
        let sequence = self.sequence();
        let mut found: Option<(Rank, Vec<String>)> = None;
        let told = self.exchange_values(site, &mine, |rank, other: (u64, Vec<String>)| {
            if other.0 != mine.0 && found.is_none() {
                found = Some((rank, other.1));
            }
            Ok(())
        });
        let (there_rank, theirs) = match (told, found) {
            (Err(error), _) => return error,
            (_, None) => return Error::Message("found".into()),
            (_, Some(other)) => other,
        };
        let mine = mine.1;
        let unsaid = if mine == theirs && !unsaid.is_empty() { &[unsaid][..] } else { &[] };
        let only = |list, other| [&only(list, other)[..], unsaid].concat();
        Error::Diverged {
            sequence,
            here_rank: self.rank(),
            here: place(site, &only(&mine, &theirs)),
            there_rank,
            there: place(site, &only(&theirs, &mine)),
        }
    }

    /// While loops are checked: whether all workers make the same of each of `count` numbers, of which a worker uses its
    /// share only. `sum` tells values apart, `words` shows one. Collective, inside of [`Context::with_arguments`].
    pub(crate) fn check_values(
        &mut self,
        site: Site,
        count: usize,
        sum: impl FnMut(usize) -> u64,
        words: impl FnOnce(usize) -> String,
    ) -> Result<()> {
        if !self.checking || self.size() == 1 {
            return Ok(());
        }
        let sums: Vec<u64> = (0..count).map(sum).collect();
        let len = count.div_ceil(BLOCKS).max(1);
        let blocks: Vec<u64> = sums.chunks(len).map(hash).collect();
        let Some(block) = self.first_difference(site, &blocks)? else { return Ok(()) };
        let block = block * len..count.min((block + 1) * len);
        let Some(at) = self.first_difference(site, &sums[block.clone()])? else { return Ok(()) };
        let at = block.start + at;
        let error =
            self.divergence_error(site, sums[at], vec![words(at)], "another value when it was made first");
        Err(error)
    }

    /// The first number in the lists of all workers, which are equally long, that differs on some.
    fn first_difference(&mut self, site: Site, numbers: &[u64]) -> Result<Option<usize>> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let (mut first, mut of_first) = (usize::MAX, Vec::new());
        self.exchange(site, Outcome::Value(&bytes), |rank, bytes| {
            if rank == 0 {
                of_first = bytes.to_vec();
            }
            let (mine, others) = (of_first.chunks(8), bytes.chunks(8));
            first = mine.zip(others).position(|(a, b)| a != b).unwrap_or(usize::MAX).min(first);
            Ok(())
        })?;
        Ok((first != usize::MAX).then_some(first))
    }
}
