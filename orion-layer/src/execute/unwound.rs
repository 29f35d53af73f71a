//! What a worker was at when a body unwound: marks on the stack that cost nothing while nothing unwinds, and leave a note
//! behind when they are dropped by one that does.
use super::Rule;
use std::cell::{Cell, RefCell};
use std::thread::panicking;

/// More dimensions than any loop has.
const MOST: usize = 8;

thread_local! {
    static ITERATION: Cell<([usize; MOST], usize)> = const { Cell::new(([0; MOST], 0)) };
    static RULE: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Forgets all notes.
pub(super) fn forget() {
    ITERATION.set(([0; MOST], 0));
    RULE.take();
}

/// The loop's variables in the iteration that unwound; none if it was outside of one.
pub(super) fn iteration() -> Vec<usize> {
    let (index, len) = ITERATION.get();
    index[..len].to_vec()
}

/// The array and the rule that was at work.
pub(super) fn rule() -> Option<(String, String)> {
    RULE.take()
}

/// Marks an iteration of a body. For `parallel_for!`.
#[derive(Debug)]
pub struct Iteration<const N: usize>(pub [usize; N]);

impl<const N: usize> Iteration<N> {
    /// The iteration has ended.
    #[inline(always)]
    pub fn end(self) {
        std::mem::forget(self);
    }
}

/// Also where a body says `continue`.
impl<const N: usize> Drop for Iteration<N> {
    #[inline]
    fn drop(&mut self) {
        if panicking() {
            note(&self.0);
        }
    }
}

#[cold]
#[inline(never)]
fn note(index: &[usize]) {
    let mut all = [0; MOST];
    let len = index.len().min(MOST);
    all[..len].copy_from_slice(&index[..len]);
    ITERATION.set((all, len));
}

/// Marks that a rule is at work.
pub(super) struct Merging<'a> {
    pub(super) array: &'a str,
    pub(super) rule: &'static str,
}

impl Drop for Merging<'_> {
    #[cold]
    fn drop(&mut self) {
        let rule = Rule { type_name: self.rule, shown: None }.short_name();
        RULE.replace(Some((self.array.to_owned(), rule)));
    }
}
