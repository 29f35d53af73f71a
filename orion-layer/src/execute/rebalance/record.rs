//! When and how bounds were moved: in a file, so that a run can be repeated.
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The field `format` of a file.
const FORMAT: &str = "hectare moved bounds, version 1";

/// The bounds between workers, moved after a pass of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Move {
    /// The loop: where it stands.
    pub loop_name: String,
    /// The plan, by its number in the program: loops are planned in the same order in every run.
    pub plan: u64,
    /// After how many passes of the plan.
    pub after: u64,
    /// The new bounds, in cells, of each dimension that is cut.
    pub bounds: Vec<Vec<usize>>,
    /// How long the steps were by the loads that were measured, as a multiple of the shortest possible: by the old bounds, and by the
    /// new ones.
    pub imbalance: [f64; 2],
}

/// All moves of a program, in their order: what [`Rebalance::replay`](super::Rebalance::replay) repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    format: String,
    workers: usize,
    moves: Vec<Move>,
}

impl Moves {
    pub(super) fn of(workers: usize, moves: Vec<Move>) -> Moves {
        Moves { format: FORMAT.into(), workers, moves }
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The moves, in their order.
    pub fn list(&self) -> &[Move] {
        &self.moves
    }

    /// Writes them to a file, as JSON. All workers have the same: one of them is to write
    /// ([`Context::root`](crate::Context::root)).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let text = serde_json::to_string(self)
            .map_err(|error| Error::Format { file: file.clone(), what: error.to_string() })?;
        // A line for each move, for those who look at it.
        fs::write(path, text.replace("{\"loop_name\"", "\n{\"loop_name\"") + "\n")
            .map_err(|source| Error::Io { file, source })
    }

    /// Reads a file of [`Moves::save`].
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Format`] if it is damaged or something else.
    pub fn read(path: impl AsRef<Path>) -> Result<Moves> {
        let file = path.as_ref().display().to_string();
        let text = fs::read(path).map_err(|source| Error::Io { file: file.clone(), source })?;
        let wrong = |what: String| Error::Format { file: file.clone(), what };
        let moves: Moves = serde_json::from_slice(&text)
            .map_err(|error| wrong(format!("line {}: not a saved move: {error}", error.line())))?;
        if moves.format != FORMAT {
            return Err(wrong(format!("the format is {:?}, and should be {FORMAT:?}", moves.format)));
        }
        let unordered = moves.moves.iter().find(|one| one.after == 0 || one.bounds.iter().any(Vec::is_empty));
        match unordered {
            Some(one) => Err(wrong(format!("the move of loop {} has no pass or no bounds", one.loop_name))),
            None => Ok(moves),
        }
    }
}
