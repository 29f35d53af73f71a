//! Which pairs of variables must not be in one round: found by the program's function, each pair by one worker, for all.
use super::bad;
use crate::context::Context;
use crate::error::Result;
use crate::panics::{self, Panicked};
use crate::site::Site;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// The most pairs that are remembered; then all are forgotten.
const MOST: usize = 1 << 22;

/// The smaller variable first.
type Pair = (u32, u32);

fn pair(a: usize, b: usize) -> Pair {
    (a.min(b) as u32, a.max(b) as u32)
}

/// Why it is not known whether two variables depend on each other.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub(super) enum Unknown {
    #[error("the dependency is NaN: the function has to return a number")]
    NotANumber,
    #[error("the dependency function panicked: {0}")]
    Panicked(#[from] Panicked),
}

/// Where the function failed, and how.
#[derive(Debug, Serialize, Deserialize)]
struct Fault {
    pair: Pair,
    why: Unknown,
}

/// The known dependencies of pairs, the same on all workers.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Whether they are dependent.
    known: HashMap<Pair, bool, BuildHasherDefault<FxHasher>>,
    pub(super) evaluated: u64,
}

impl Pairs {
    pub(super) fn are_dependent(&self, a: usize, b: usize) -> bool {
        self.known.get(&pair(a, b)).copied().unwrap_or(true)
    }

    /// Finds what is not known of the pairs of `candidates` with each other and with `accepted`. Collective, if `always` or
    /// something is unknown.
    pub(super) fn find(
        &mut self,
        w: &mut Context<'_>,
        site: Site,
        (accepted, candidates): (&[usize], &[usize]),
        dependent: &dyn Fn(usize, usize) -> Result<bool, Unknown>,
        always: bool,
    ) -> Result<()> {
        let others = candidates.iter().enumerate();
        let all =
            others.flat_map(|(at, a)| accepted.iter().chain(&candidates[..at]).map(move |b| pair(*a, *b)));
        let mut unknown: Vec<Pair> = all.clone().filter(|pair| !self.known.contains_key(pair)).collect();
        if self.known.len() + unknown.len() > MOST {
            self.known.clear();
            unknown = all.collect();
        }
        if unknown.is_empty() && !always {
            return Ok(());
        }
        unknown.sort_unstable();
        let (me, size) = (w.rank() as usize, w.size());
        let bound = |rank: usize| unknown.len() * rank / size;
        let mine = evaluate(&unknown[bound(me)..bound(me + 1)], dependent);
        let (mut found, mut fault) = (Vec::with_capacity(unknown.len()), None);
        w.exchange_values(site, &mine, |_, theirs: Result<Vec<bool>, Fault>| {
            match theirs {
                Ok(theirs) => found.extend(theirs),
                // Workers have the pairs in their order: the first fault is the same for every number of workers.
                Err(theirs) => fault = fault.take().or(Some(theirs)),
            }
            Ok(())
        })?;
        if let Some(Fault { pair: (a, b), why }) = fault {
            return Err(bad(site, format!("variables {a} and {b}"), why.to_string()));
        }
        self.evaluated += unknown.len() as u64;
        self.known.extend(unknown.into_iter().zip(found));
        Ok(())
    }
}

fn evaluate(
    pairs: &[Pair],
    dependent: &dyn Fn(usize, usize) -> Result<bool, Unknown>,
) -> Result<Vec<bool>, Fault> {
    let one = |pair: &Pair| {
        let made = panics::catch(|| dependent(pair.0 as usize, pair.1 as usize));
        made.unwrap_or_else(|panicked| Err(panicked.into())).map_err(|why| Fault { pair: *pair, why })
    };
    pairs.iter().map(one).collect()
}
