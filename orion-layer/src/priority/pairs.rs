//! Which pairs of variables must not be in one round: found by the program's function, each pair by one worker, for all.
use super::bad;
use crate::context::Context;
use crate::error::Result;
use crate::panics;
use crate::site::Site;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// So many pairs are remembered; then all are forgotten.
const MOST: usize = 1 << 22;

/// The smaller variable first.
type Pair = (u32, u32);

fn pair(a: usize, b: usize) -> Pair {
    (a.min(b) as u32, a.max(b) as u32)
}

/// Where the function failed, and how.
#[derive(Debug, Serialize, Deserialize)]
struct Fault {
    pair: Pair,
    what: String,
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
        dependent: &dyn Fn(usize, usize) -> Result<bool, String>,
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
        if let Some(Fault { pair: (a, b), what }) = fault {
            return Err(bad(site, format!("variables {a} and {b}"), what));
        }
        self.evaluated += unknown.len() as u64;
        self.known.extend(unknown.into_iter().zip(found));
        Ok(())
    }
}

fn evaluate(
    pairs: &[Pair],
    dependent: &dyn Fn(usize, usize) -> Result<bool, String>,
) -> Result<Vec<bool>, Fault> {
    let one = |pair: &Pair| {
        // Unwind safe: state that the function leaves half changed is its own, and the program gets an error and goes no further.
        let made = catch_unwind(AssertUnwindSafe(|| dependent(pair.0 as usize, pair.1 as usize)));
        let panicked = |payload: Box<dyn std::any::Any + Send>| {
            Err(format!("the dependency function panicked: {}", panics::message(&*payload)))
        };
        made.unwrap_or_else(panicked).map_err(|what| Fault { pair: *pair, what })
    };
    pairs.iter().map(one).collect()
}
