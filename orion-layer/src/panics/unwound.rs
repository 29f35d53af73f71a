//! The iteration and the rule at work when a body unwound: the iteration is noted when it begins, the rule by a mark on the stack that
//! costs nothing while nothing unwinds and leaves a note behind when it is dropped by one that does.
use crate::text::short_name;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// More dimensions than any loop has.
const MOST: usize = 8;

/// The iteration that a worker is in.
struct At {
    index: [Cell<usize>; MOST],
    /// Of the loop's dimensions; 0 outside of iterations.
    dims: Cell<usize>,
}

/// The rule that unwound.
#[derive(Debug)]
pub(crate) struct Ruled {
    /// The element that it merges into.
    pub(crate) array: String,
    /// Its type.
    pub(crate) rule: String,
    /// The key that it was at; empty for arrays, whose elements have none.
    pub(crate) key: String,
}

thread_local! {
    static AT: At = const { At { index: [const { Cell::new(0) }; MOST], dims: Cell::new(0) } };
    static RULE: RefCell<Option<Ruled>> = const { RefCell::new(None) };
}

/// PassTrace that an iteration of a body begins; for `parallel_for!`. That is a few stores. A value on the stack whose `drop`
/// makes the note would need none, but every call in the body would have to unwind through it, and the compiler then keeps
/// what is live across such a call in memory: sparse logistic regression was half as fast.
#[inline(always)]
pub fn begin_iteration<const N: usize>(index: [usize; N]) {
    AT.with(|at| {
        at.index.iter().zip(index).for_each(|(cell, index)| cell.set(index));
        at.dims.set(N.min(MOST));
    });
}

/// Notes, if the body unwinds, which iteration of the innermost loop it was in: in place of [`begin_iteration`] where the body
/// calls nothing that is not inlined, so that nothing has to be kept in memory for it.
#[derive(Debug)]
pub struct IterationMark<const N: usize> {
    first: [usize; N],
    at: usize,
}

impl<const N: usize> IterationMark<N> {
    /// Before the first iteration.
    #[inline(always)]
    pub fn new(first: [usize; N]) -> IterationMark<N> {
        IterationMark { first, at: 0 }
    }

    /// An iteration begins: number `at`, from 0.
    #[inline(always)]
    pub fn begin(&mut self, at: usize) {
        self.at = at;
    }

    /// All iterations have ended.
    #[inline(always)]
    pub fn end(self) {
        std::mem::forget(self);
    }
}

impl<const N: usize> Drop for IterationMark<N> {
    #[inline(always)]
    fn drop(&mut self) {
        let mut index = self.first;
        if let Some(last) = index.last_mut() {
            *last += self.at;
        }
        begin_iteration(index);
    }
}

/// A panic from now on is in no iteration.
#[inline]
pub(crate) fn end_iterations() {
    AT.with(|at| at.dims.set(0));
}

/// Forgets all notes.
pub(crate) fn forget() {
    end_iterations();
    RULE.take();
}

/// The loop's variables in the iteration that unwound; none if it was outside of one.
pub(crate) fn iteration() -> Vec<usize> {
    AT.with(|at| at.index[..at.dims.get()].iter().map(Cell::get).collect())
}

/// The rule that was at work.
pub(crate) fn rule() -> Option<Ruled> {
    RULE.take()
}

/// Marks that a rule is at work.
struct Merging<'a, K: Fn() -> String> {
    array: &'a str,
    rule: &'static str,
    key: K,
}

impl<K: Fn() -> String> Drop for Merging<'_, K> {
    #[cold]
    fn drop(&mut self) {
        let rule = short_name(self.rule);
        // `Debug` of a key is the program's, too; a second panic that left this would end the process.
        let key = catch_unwind(AssertUnwindSafe(&self.key)).unwrap_or_default();
        RULE.replace(Some(Ruled { array: self.array.to_owned(), rule, key }));
    }
}

/// Marks that the rule of `array` is at work, until this is done.
pub(crate) fn merging<R>(array: &str, rule: &'static str, act: impl FnOnce() -> R) -> R {
    merging_at(array, rule, String::new, act)
}

/// The same, at a key.
#[inline]
pub(crate) fn merging_at<R>(
    array: &str,
    rule: &'static str,
    key: impl Fn() -> String,
    act: impl FnOnce() -> R,
) -> R {
    let mark = Merging { array, rule, key };
    let done = act();
    std::mem::forget(mark);
    done
}
