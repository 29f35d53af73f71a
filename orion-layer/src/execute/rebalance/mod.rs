//! Rebalancing: the bounds between workers move between passes, by the time that cells took.
//!
//! Cells stay what they are, and workers get other ranges of them, so that only who runs a cell changes, and in rotations when.
mod record;

pub use self::record::{Move, Moves};

use super::meter::Meter;
use super::plan::LoopPlan;
use super::plans::Key;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::panics::{self, Panicked};
use crate::relax::Treatment;
use crate::site::Site;
use hectare_dependence::schedule::{cell_number, for_each_cell, imbalance};
use hectare_dsm::Rank;
use std::fmt;
use std::rc::Rc;

/// A move has to shorten the steps to this share of what they were: what a timer sees varies.
const WORTHWHILE: f64 = 0.97;
/// The imbalance above which bounds move, if the program does not say.
const LIMIT: f64 = 1.1;

/// The load of a cell of a loop, given its name and the values of each of its variables.
type LoadOf = dyn Fn(&str, &[std::ops::Range<i64>]) -> u64;

/// Whether and how the bounds between workers move at the ends of passes: [`Context::rebalance`].
#[derive(Clone, Default)]
pub struct Rebalance(How);

#[derive(Clone, Default)]
enum How {
    #[default]
    Never,
    Measured {
        limit: f64,
        load: Option<Rc<LoadOf>>,
    },
    Replay(Rc<Moves>),
}

impl fmt::Debug for Rebalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            How::Never => f.write_str("never"),
            How::Measured { limit, load: None } => write!(f, "by time, above {limit}"),
            How::Measured { limit, load: Some(_) } => write!(f, "by given loads, above {limit}"),
            How::Replay(moves) => write!(f, "as recorded: {:?}", moves.list()),
        }
    }
}

impl Rebalance {
    /// Bounds stay where counts of iterations have put them. This is the default.
    pub fn never() -> Rebalance {
        Rebalance::default()
    }

    /// Bounds move by the time that each cell took in the last pass, if the imbalance is above 1.1.
    pub fn by_time() -> Rebalance {
        Rebalance(How::Measured { limit: LIMIT, load: None })
    }

    /// The same by loads that the program knows: `load` says that of a cell, given the loop's name and the values of each of its
    /// variables, in any unit. With it, moves are the same in every run.
    pub fn by_load(load: impl Fn(&str, &[std::ops::Range<i64>]) -> u64 + 'static) -> Rebalance {
        Rebalance(How::Measured { limit: LIMIT, load: Some(Rc::new(load)) })
    }

    /// Bounds move only if the steps take more than `limit` times as long as with equal shares. Nothing changes for a replay.
    #[must_use]
    pub fn above(self, limit: f64) -> Rebalance {
        match self.0 {
            How::Measured { load, .. } => Rebalance(How::Measured { limit, load }),
            how => Rebalance(how),
        }
    }

    /// Bounds move when and as they did in the run that these moves are of.
    pub fn replay(moves: Moves) -> Rebalance {
        Rebalance(How::Replay(Rc::new(moves)))
    }
}

/// How the program is rebalanced, and what came of it.
#[derive(Debug, Default)]
struct Rebalancing {
    how: Rebalance,
    done: Vec<Move>,
}

impl Context<'_> {
    /// Lets the bounds between workers move at the ends of passes from now on, in loops that the runtime cuts into blocks or a rotation
    /// over arrays in parts: where the load of iterations is not what their count says. Collective; the same on all workers.
    ///
    /// Loops whose arrays lie in place, that take tiles as they come free, have a schedule of their own, subscripts that are inspected,
    /// or served arrays stay as they are. A move costs as much as planning, and arrays and entries go to their new workers at the
    /// next pass. In loops without conflicts results have the same bits whoever runs what; in rotations, moves change the order of
    /// updates: [`Context::moves`] records them, and [`Rebalance::replay`] repeats a run.
    ///
    /// # Errors
    /// [`Error::Invalid`] on several hosts, for a limit below 1, or for moves of another number of workers; [`Error::Diverged`] if other
    /// workers ask for something else, [`Error::WorkerLost`].
    #[track_caller]
    pub fn rebalance(&mut self, how: Rebalance) -> Result<()> {
        let site = Site::here();
        let words = vec![format!("rebalancing {how:?}")];
        self.with_arguments(site, words, |w| w.exchange(site, Outcome::Value(&[]), |_, _| Ok(())))?;
        let invalid = |what: String| Err(Error::Invalid(format!("Context::rebalance: {what}")));
        match &how.0 {
            How::Never => {}
            _ if self.fabric.spans_hosts() => {
                return invalid(
                    "on several hosts bounds stay where counts have put them: it is for one host".into(),
                );
            }
            How::Measured { limit, .. } if limit.is_nan() || *limit < 1.0 => {
                return invalid(format!("a limit of {limit}: 1 is the least, equal shares for all"));
            }
            How::Replay(moves) if moves.workers() != self.size() => {
                return invalid(format!(
                    "moves of {} workers, and there are {}",
                    moves.workers(),
                    self.size()
                ));
            }
            _ => {}
        }
        match self.extensions.get_mut::<Rebalancing>() {
            Some(rebalancing) => rebalancing.how = how,
            None => self.extensions.put(Rebalancing { how, done: Vec::new() }),
        }
        Ok(())
    }

    /// The moves of all loops so far; the same on every worker.
    pub fn moves(&self) -> Moves {
        let done = self.extensions.get::<Rebalancing>().map(|rebalancing| rebalancing.done.clone());
        Moves::of(self.size(), done.unwrap_or_default())
    }

    fn how_rebalanced(&self) -> How {
        self.extensions.get::<Rebalancing>().map_or(How::Never, |rebalancing| rebalancing.how.0.clone())
    }

    /// The meter of a pass's loads, if the loop is rebalanced by them.
    pub(super) fn meter(&self, plan: &LoopPlan) -> Option<Meter> {
        let How::Measured { load, .. } = self.how_rebalanced() else { return None };
        plan.can_move().then(|| Meter::of(plan.cells, load.is_none()))
    }

    /// After a pass: moves the bounds of a loop's plan, if they are to be moved. Collective.
    pub(super) fn rebalanced(&mut self, key: &Key, plan: &LoopPlan) -> Result<()> {
        let after = plan.timing.borrow().passes;
        let one = match self.how_rebalanced() {
            How::Never => None,
            How::Measured { limit, load } => self.move_by_loads(plan, limit, load.as_deref(), after)?,
            How::Replay(moves) => {
                let mut all = moves.list().iter();
                all.find(|one| (one.plan, one.after) == (plan.number, after)).cloned()
            }
        };
        let Some(one) = one else { return Ok(()) };
        let refused = |what: String| Error::InvalidSchedule {
            loop_name: plan.nest.name.clone(),
            schedule: format!("{}, with moved bounds,", plan.choice.chosen()),
            what,
        };
        if one.loop_name != plan.nest.name {
            let what = format!(
                "the recorded move is of plan {}, loop {}: it is of another program, or another version",
                one.plan, one.loop_name
            );
            return Err(refused(what));
        }
        if !plan.can_move() {
            return Err(refused("the recorded move is of a loop whose bounds move, and these stay".into()));
        }
        let moved = plan.choice.moved(&plan.nest, &plan.dependences, &one.bounds, self.size());
        let plan = LoopPlan::moved_to(plan, moved.map_err(|error| refused(error.to_string()))?, self);
        self.keep_plan(key.clone(), Rc::new(plan));
        tracing::debug!(loop_name = one.loop_name, bounds = ?one.bounds, imbalance = ?one.imbalance, "bounds moved");
        if let Some(rebalancing) = self.extensions.get_mut::<Rebalancing>() {
            rebalancing.done.push(one);
        }
        Ok(())
    }

    /// Which move the loads of the last pass ask for: all workers have all loads, and find the same. Collective.
    fn move_by_loads(
        &mut self,
        plan: &LoopPlan,
        limit: f64,
        load: Option<&LoadOf>,
        after: u64,
    ) -> Result<Option<Move>> {
        let Some(meter) = plan.meter.take() else { return Ok(None) };
        let mine = match load {
            None => Ok(meter.into_loads()),
            Some(load) => {
                let rank = self.rank();
                panics::catch(|| given_loads(plan, rank, load))
            }
        };
        let refused = |what: String| Error::InvalidLoop { loop_name: plan.nest.name.clone(), what };
        let (mut loads, mut fault) = (vec![0u64; plan.cells], None);
        self.exchange_values(plan.site, &mine, |rank, theirs: Result<Vec<u64>, Panicked>| {
            match theirs {
                Ok(theirs) => loads.iter_mut().zip(theirs).for_each(|(sum, load)| *sum += load),
                Err(panicked) => fault = fault.take().or(Some((rank, panicked))),
            }
            Ok(())
        })?;
        if let Some((rank, panicked)) = fault {
            return Err(refused(format!("the function of loads panicked on worker {rank}: {panicked}")));
        }
        if loads.iter().map(|load| u128::from(*load)).sum::<u128>() > u128::from(u64::MAX) {
            return Err(refused(
                "the loads of its cells sum to more than a number of 64 bits: scale them".into(),
            ));
        }
        let workers = self.size();
        let before = imbalance(&plan.choice.grid, &plan.choice.steps, &loads);
        if before <= limit {
            return Ok(None);
        }
        let Some(bounds) = plan.choice.bounds_for(&loads, workers) else { return Ok(None) };
        let Ok(moved) = plan.choice.moved(&plan.nest, &plan.dependences, &bounds, workers) else {
            return Ok(None);
        };
        let then = imbalance(&moved.grid, &moved.steps, &loads);
        Ok((then < WORTHWHILE * before).then(|| Move {
            loop_name: plan.nest.name.clone(),
            plan: plan.number,
            after,
            bounds,
            // Few digits, which are read from a file as the same bits.
            imbalance: [before, then].map(|times| (times * 1000.0).round() / 1000.0),
        }))
    }
}

/// The loads of the cells that a worker runs, by the program's function; those of others are 0.
fn given_loads(plan: &LoopPlan, rank: Rank, load: &LoadOf) -> Vec<u64> {
    let mut loads = vec![0; plan.cells];
    for tile in &plan.tiles[rank as usize] {
        for_each_cell(&tile.tile, |cell| {
            let values = cell.iter().zip(&plan.choice.cuts).map(|(cell, cuts)| cuts[*cell]..cuts[cell + 1]);
            let values: Vec<_> = values.collect();
            loads[cell_number(&plan.choice.grid, cell)] = load(&plan.nest.name, &values);
            true
        });
    }
    loads
}

impl LoopPlan {
    /// Whether its bounds can be moved.
    fn can_move(&self) -> bool {
        let stays = self.tasks.is_some() || self.inspection.is_some() || self.has_own_schedule;
        let serves = self.sharing.treatments.contains(&Treatment::Served);
        self.workers() > 1 && !stays && !serves && self.choice.movable().is_some()
    }
}
