//! The protocols of shared memory, as words and the rules for changing them: rounds, claims, ownership, pins, records
//! of copies, generations, names. Knows no segment and no areas; loom checks what is here. `SYNC.md` has the protocols.
pub(crate) mod abandon;
pub(crate) mod answers;
pub(crate) mod area_state;
pub(crate) mod arrival;
pub(crate) mod claim;
pub(crate) mod clock_words;
pub(crate) mod conflict;
#[cfg(not(loom))]
pub(crate) mod division;
pub(crate) mod doorbell;
pub(crate) mod due;
pub(crate) mod force_request;
pub(crate) mod generations;
pub(crate) mod index;
pub(crate) mod label;
pub(crate) mod lock;
pub(crate) mod lookup;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod ownership;
pub(crate) mod pin;
pub(crate) mod plan_checks;
pub(crate) mod presence;
pub(crate) mod publication;
pub(crate) mod record;
pub(crate) mod remote_clocks;
pub(crate) mod round;
pub(crate) mod tasks;
pub(crate) mod viewed;
pub(crate) mod word;
pub(crate) mod words;
