//! Whether all workers run the same loop: what each says of it goes as a number with every frame of the pass
//! (`context::mailbox`), so that the first exchange finds a worker that says something else, without one more. Then all
//! exchange the words.
use super::LoopHead;
use super::plan::LoopPlan;
use crate::context::Context;
use crate::contract::{AnyArrays, AnySpace, LoopArray, Treatment};
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dependence::loop_nest::Space;
use rustc_hash::FxHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

/// Hashes what is written.
struct Hashed(FxHasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// A number for all that every worker has to say alike of a loop, its subscripts excepted: with these goes what was
/// planned.
pub(super) fn fingerprint(
    head: &LoopHead<'_>,
    (space, checking): (u64, bool),
    schedule: Option<&String>,
    arrays: &mut dyn AnyArrays,
) -> u64 {
    let mut hash = Hashed(FxHasher::default());
    (head.relax, space, checking, schedule, head.captured).hash(&mut hash.0);
    for array in arrays.each() {
        (array.number(), array.is_written(), array.treatment()).hash(&mut hash.0);
        if let Some(rule) = array.rule() {
            hash.0.write(rule.type_name.as_bytes());
            // Words of a `Debug` that fails are words all the same.
            let _ = write!(hash, "{rule}");
        }
    }
    hash.0.finish()
}

/// With the plan.
pub(super) fn with_plan(fingerprint: u64, plan: &LoopPlan) -> u64 {
    let mut hash = FxHasher::default();
    (fingerprint, plan.digest).hash(&mut hash);
    hash.finish()
}

fn words(
    head: &LoopHead<'_>,
    space: &dyn AnySpace,
    checking: bool,
    arrays: &[&mut dyn LoopArray],
) -> Vec<String> {
    let bounds = head.variables.iter().zip(space.bounds());
    let mut words = match space.kind() {
        Space::Dense => bounds.map(|(name, (start, end))| format!("{name} in {start}..{end}")).collect(),
        Space::Entries { .. } => vec![format!("entries {}", space.key())],
    };
    for (array, name) in arrays.iter().zip(head.arrays) {
        let clause = match (array.treatment(), array.is_written()) {
            (Treatment::Exact, false) => "read",
            (Treatment::Exact, true) => "write",
            (Treatment::Relaxed, _) => "relax",
            (Treatment::Buffered | Treatment::Collected, _) => "buffer",
            (Treatment::Served, _) => "serve",
        };
        let rule = array.rule().map_or_else(String::new, |rule| format!(" by the rule {rule}"));
        words.push(format!("{clause} {name} (array {}){rule}", array.number()));
    }
    words.push(format!("consistency = {:?}", head.relax.consistency));
    words.push(format!("every = {:?}", head.relax.every));
    words.push(format!("tail = {:?}", head.relax.tail));
    words.extend(head.schedule.map(|schedule| format!("schedule {schedule:?}")));
    words.extend(checking.then(|| "check_loops".to_owned()));
    let captured = head.captured.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    words.extend(captured.map(|(name, value)| format!("{name} = {value}")));
    words
}

impl Context<'_> {
    /// After an exchange that found that workers say different things of a loop: what differs. Collective.
    pub(super) fn loop_divergence(
        &mut self,
        head: &LoopHead<'_>,
        space: &dyn AnySpace,
        arrays: &mut dyn AnyArrays,
        fingerprint: u64,
    ) -> Error {
        let words = words(head, space, self.checking, &arrays.each());
        // If the words are the same, what was planned by them is not.
        self.divergence_error(head.site, fingerprint, words, "other values in its subscripts")
    }

    /// Says that this worker is ready to plan a loop: of those that say something else of it, it would otherwise hear in
    /// the middle. Collective.
    pub(super) fn agree_to_plan(&mut self, site: Site) -> Result<()> {
        self.exchange(site, crate::context::Outcome::Value(&[]), |_, _| Ok(()))
    }
}
