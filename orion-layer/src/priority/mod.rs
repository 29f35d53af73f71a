//! Priority: which variables of a loop run next, drawn by how much they changed.
//!
//! After STRADS (Kim et al., EuroSys 2016). Many programs go again and again through variables of which most have come to rest.
//! [`Priority`] draws the *round* that runs next, a few variables that may run at the same time: those that changed most are drawn
//! most often, and two that depend on each other too much are never in one round.
//!
//! ```
//! use hectare_orion::{parallel_for, priority::Priority, run};
//!
//! // Least squares of three columns, one variable each, by exact steps.
//! let columns = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]];
//! let dot = |a: &[f64; 4], b: &[f64; 4]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
//! let solutions = run(2, |w| {
//!     let (mut x, mut rest) = ([0.0; 3], [3.0, 4.0, 1.0, 2.0]);
//!     let mut steps = w.zeros::<f64, 1>([2])?;
//!     let mut priority = Priority::new(3).batch(2).bound(0.4);
//!     for _round in 0..300 {
//!         let round = priority.draw(w, |j, k| dot(&columns[j], &columns[k]) / 2.0)?;
//!         // The variables of a round run in parallel, and see the state before it.
//!         parallel_for!(w, unordered, write steps; for at in 0..round.len() {
//!             steps[at] = dot(&columns[round[at]], &rest) / 2.0;
//!         })?;
//!         let steps = steps.to_vec(w)?;
//!         for (j, step) in round.iter().zip(&steps) {
//!             x[*j] += step;
//!             rest.iter_mut().zip(columns[*j]).for_each(|(rest, a)| *rest -= step * a);
//!         }
//!         priority.feed(&steps.iter().map(|step| step.abs()).collect::<Vec<_>>()[..round.len()])?;
//!     }
//!     Ok(x)
//! })?;
//! assert!((solutions[0][0] - 1.0).abs() < 1e-6 && (solutions[0][1] - 2.0).abs() < 1e-6, "{:?}", solutions[0]);
//! assert_eq!(solutions[0], solutions[1]);
//! # Ok::<(), hectare_orion::Error>(())
//! ```
mod drawer;
mod pairs;
mod sum_tree;
#[cfg(test)]
mod tests;

use self::drawer::{By, Drawer};
use self::pairs::{Pairs, Unknown};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::site::Site;
use hectare_data::random::Stream;

/// For one round, as often are candidates drawn to take the places of those that were put off.
const WAVES: usize = 4;
/// The share of draws that are uniform, if the program does not say.
const EXPLORE: f64 = 0.1;
/// The sum of as many as there may be is finite.
const MOST_WEIGHT: f64 = 1e290;

fn bad(site: Site, place: String, what: String) -> Error {
    Error::Priority { loop_name: site.to_string(), place, what }
}

/// Draws which of the variables `0..count` run next, round by round: [`Priority::draw`], a loop over the round,
/// [`Priority::feed`].
///
/// - **By weight**: the chance of a variable is in proportion to what [`Priority::feed`] was told when it ran last, usually how much
///   it changed. A round is as many draws as the batch says: if few variables have nearly all the weight, they are drawn again, and the
///   round is short. [`Priority::weigh`] says with which weights to begin; if it was not called, all variables have their first turn
///   before one has its second. A share of the draws is uniform ([`Priority::explore`]), so that no variable is forgotten.
/// - **Without dependent pairs**: no round has two variables whose dependency, as the program's function says, is above the bound. Of
///   such a pair the one that was drawn later is put off: it comes first in the next round, so that everyone drawn has a turn soon.
/// - **The same for every number of workers**: draws depend on the program's seed, the weights and the dependencies alone. All workers
///   have the same `Priority`, and make the same calls.
///
/// It takes 48 to 96 bytes a variable, on each worker, and a draw takes time in proportion to the logarithm of their number.
#[derive(Debug)]
pub struct Priority {
    count: usize,
    batch: usize,
    bound: f64,
    explore: f64,
    by: By,
    drawer: Option<Drawer>,
    pairs: Pairs,
    /// Put off, in the order in which they were drawn.
    deferred: Vec<usize>,
    round: Vec<usize>,
    /// Whether the round has not been fed yet.
    awaits_weights: bool,
    site: Option<Site>,
    rounds: u64,
    updates: u64,
    weights: Option<Vec<f64>>,
}

impl Priority {
    /// A priority over `count` variables, eight in a round, drawn by weight, with a bound of 0.1.
    pub fn new(count: usize) -> Priority {
        Priority {
            count,
            batch: 8,
            bound: 0.1,
            explore: EXPLORE,
            by: By::Weight,
            drawer: None,
            pairs: Pairs::default(),
            deferred: Vec::new(),
            round: Vec::new(),
            awaits_weights: false,
            site: None,
            rounds: 0,
            updates: 0,
            weights: None,
        }
    }

    /// Runs at most `batch` variables in a round.
    #[must_use]
    pub fn batch(self, batch: usize) -> Priority {
        Priority { batch, ..self }
    }

    /// Two variables whose dependency is above this are never in one round.
    #[must_use]
    pub fn bound(self, bound: f64) -> Priority {
        Priority { bound, ..self }
    }

    /// The share of draws that are uniform, whatever the weights are: 0.1 if this is not called.
    #[must_use]
    pub fn explore(self, explore: f64) -> Priority {
        Priority { explore, ..self }
    }

    /// All draws are uniform; weights are checked, and not used.
    #[must_use]
    pub fn uniform(self) -> Priority {
        Priority { by: By::Uniform, ..self }
    }

    /// The weights to begin with, one for each variable, instead of a first turn for all.
    #[must_use]
    pub fn weigh(self, weights: Vec<f64>) -> Priority {
        Priority { weights: Some(weights), ..self }
    }

    /// Rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Variables of all rounds so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// How often the dependency function was called so far, on all workers together.
    pub fn evaluated(&self) -> u64 {
        self.pairs.evaluated
    }

    /// The next round: up to a batch of different variables, no two of which have a `dependency` above the bound. Collective.
    ///
    /// `dependency` is a function of two variables, the smaller first, that does not change: the workers share its calls, and each
    /// pair's result is remembered. It is for the program to take absolute values.
    ///
    /// # Errors
    /// [`Error::Priority`], which names this call and a variable or pair, if `dependency` panics or returns NaN, a setting or a weight
    /// is invalid, or the last round was not fed: the same on all workers. [`Error::Diverged`] if workers have other settings or
    /// weights, [`Error::WorkerLost`].
    #[track_caller]
    pub fn draw(
        &mut self,
        w: &mut Context<'_>,
        dependency: impl Fn(usize, usize) -> f64,
    ) -> Result<Vec<usize>> {
        let site = Site::here();
        self.site = Some(site);
        let sum = self.drawer.as_ref().map_or(0.0, Drawer::total);
        let words = vec![
            format!("{} variables in rounds of {}", self.count, self.batch),
            format!("bound {:?}, explore {:?}, drawn by {:?}", self.bound, self.explore, self.by),
            format!("round {} and weights of {sum:?}", self.rounds),
        ];
        w.with_arguments(site, words, |w| {
            let ready = self.ready(w.seed(), site);
            w.agree_on_same(site, ready)?;
            self.drawn(w, site, &dependency)
        })
    }

    /// Refuses what cannot be meant; makes the trees, the first time.
    fn ready(&mut self, seed: u64, site: Site) -> Result<()> {
        let setting = |place: &str, what: String| Err(bad(site, place.into(), what));
        if self.count > u32::MAX as usize {
            return setting("variables", format!("{}: up to {}", self.count, u32::MAX));
        }
        if self.batch == 0 {
            return setting("batch", "0: at least 1".into());
        }
        if self.bound.is_nan() {
            return setting("bound", "NaN: a number".into());
        }
        if !(0.0..=1.0).contains(&self.explore) {
            return setting("explore", format!("{}: a share, from 0 to 1", self.explore));
        }
        if self.awaits_weights {
            return setting("last round", "its weights are missing: feed them before the next draw".into());
        }
        if self.drawer.is_some() {
            return Ok(());
        }
        let given = self.weights.take();
        if let Some(weights) = &given {
            if weights.len() != self.count {
                return setting("weights", format!("{} of them for {} variables", weights.len(), self.count));
            }
            (0..).zip(weights).try_for_each(|(variable, weight)| check(site, variable, *weight))?;
        }
        self.drawer = Some(Drawer::new(self.count, given, Stream::new(seed, "priority")));
        Ok(())
    }

    fn drawn(
        &mut self,
        w: &mut Context<'_>,
        site: Site,
        dependency: &dyn Fn(usize, usize) -> f64,
    ) -> Result<Vec<usize>> {
        let bound = self.bound;
        let dependent = |a: usize, b: usize| match dependency(a, b) {
            value if value.is_nan() => Err(Unknown::NotANumber),
            value => Ok(value > bound),
        };
        let mut taken = Vec::new();
        let filled = self.filled(w, site, &dependent, &mut taken);
        if let Some(drawer) = self.drawer.as_mut() {
            for (at, first) in taken {
                drawer.put_back(at, first);
            }
        }
        let round = filled?;
        self.rounds += 1;
        self.updates += round.len() as u64;
        self.awaits_weights = true;
        self.round.clone_from(&round);
        Ok(round)
    }

    /// Draws candidates until a round is full, or enough were put off. They go to `taken`, and out of the trees.
    fn filled(
        &mut self,
        w: &mut Context<'_>,
        site: Site,
        dependent: &dyn Fn(usize, usize) -> Result<bool, Unknown>,
        taken: &mut Vec<(usize, f64)>,
    ) -> Result<Vec<usize>> {
        let Priority { drawer, pairs, deferred, .. } = self;
        let Some(drawer) = drawer else { return Ok(Vec::new()) };
        let mut candidates = std::mem::take(deferred);
        taken.extend(candidates.iter().map(|at| (*at, drawer.take(*at))));
        let mut round = Vec::new();
        let mut draws = self.batch.min(self.count).saturating_sub(candidates.len());
        for wave in 0..WAVES {
            for _ in 0..draws {
                match drawer.next(self.by, self.explore) {
                    Some(at) if !drawer.is_taken(at) => {
                        taken.push((at, drawer.take(at)));
                        candidates.push(at);
                    }
                    // By weight, draws are with replacement: where few have all the weight, others do not run in their place.
                    Some(_) => {}
                    None => break,
                }
            }
            // One exchange at least finds programs that have diverged.
            pairs.find(w, site, (&round, &candidates), dependent, wave == 0)?;
            draws = 0;
            for at in candidates.drain(..) {
                let is_free =
                    |other: &usize| mutant::is(Mutant::PairsKept) || !pairs.are_dependent(at, *other);
                if round.iter().all(is_free) {
                    round.push(at);
                } else {
                    deferred.push(at);
                    draws += 1;
                }
            }
            if draws == 0 {
                break;
            }
        }
        // More would fill the next rounds with what was drawn by old weights.
        deferred.truncate(self.batch);
        Ok(round)
    }

    /// Ends a round: the new weight of each of its variables, in their order, usually how much it changed.
    ///
    /// # Errors
    /// [`Error::Priority`], which names the call that drew the round, and the variable, unless there is a number for each, 0 or
    /// greater, and not infinite. Weights stay as they were then.
    pub fn feed(&mut self, weights: &[f64]) -> Result<()> {
        let Some(site) = self.site.filter(|_| self.awaits_weights) else {
            return Err(Error::Invalid("Priority::feed: there is no round: call draw first".into()));
        };
        if weights.len() != self.round.len() {
            let what =
                format!("{} weights for the {} variables of the round", weights.len(), self.round.len());
            return Err(bad(site, format!("round {}", self.rounds), what));
        }
        let each = || self.round.iter().zip(weights);
        each().try_for_each(|(variable, weight)| check(site, *variable, *weight))?;
        if let Some(drawer) = self.drawer.as_mut() {
            for (variable, weight) in self.round.iter().zip(weights) {
                let weight = if mutant::is(Mutant::WeightsKept) { 1.0 } else { *weight };
                drawer.feed(*variable, weight);
            }
        }
        self.awaits_weights = false;
        Ok(())
    }
}

fn check(site: Site, variable: usize, weight: f64) -> Result<()> {
    match (0.0..=MOST_WEIGHT).contains(&weight) {
        true => Ok(()),
        false => Err(bad(
            site,
            format!("variable {variable}"),
            format!("the weight is {weight}: a number from 0 to {MOST_WEIGHT:e}"),
        )),
    }
}
