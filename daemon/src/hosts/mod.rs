//! On which hosts a program is to run, and which ranks each has: lists that a user wrote, and what launchers say.
mod allocation;
mod list;
mod plan;
mod seat;
mod slurm;

pub use allocation::{AllocationError, allocation};
pub use list::{Host, ListError, parse_file, parse_list};
pub use plan::{MOST_RANKS, Place, Plan, PlanError};
pub use seat::{Seat, SeatError, seat};
pub use slurm::{SlurmError, counts, nodes};
