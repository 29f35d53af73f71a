//! Additions to loom for models: sequentially consistent accesses, mutants, and death.
//!
//! loom takes sequentially consistent accesses for acquire and release, and its fences make all accesses of a thread
//! stronger. So they are modelled here: the order in which loom runs the accesses of an execution is their one total order.
//! A sequentially consistent load reads what the last sequentially consistent store before it in this order left, or
//! what a weaker store after that one left, and nothing older than another such load has read. That is what the language says of them, and finds a load that is too weak
//! as well as a store that is. `SYNC.md`, "Models", says what it hides.
//!
//! A mutant is the real code with one kind of access to one word made weaker ([`Change`]), or with its fences left
//! out.
use loom::sync::atomic::Ordering;
use loom::thread_local;
use std::cell::Cell;
use std::sync::Mutex;

/// Accesses of one kind, by what they do to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    /// Read, modify, write: also if nothing is written in the end.
    Change,
}

/// A mutation: accesses of one kind become weaker.
#[derive(Clone, Copy, Debug)]
struct Change {
    access: Access,
    from: Ordering,
    to: Ordering,
}

/// The ordering of a load that has no right to release.
fn of_load(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel => Ordering::Acquire,
        Ordering::Release => Ordering::Relaxed,
        order => order,
    }
}

/// The notes on a word beside its value: the mutation, and the values that sequentially consistent loads may read.
#[derive(Debug)]
struct Notes<V> {
    change: Option<Change>,
    /// The value of the last sequentially consistent store, then those of weaker ones since.
    readable: Vec<V>,
    /// All values before those.
    older: Vec<V>,
}

impl<V: Copy + PartialEq> Notes<V> {
    fn order(&self, access: Access, order: Ordering) -> Ordering {
        match self.change {
            Some(change) if change.access == access && change.from == order => change.to,
            _ => order,
        }
    }

    /// Whether a sequentially consistent load may read a value; not if it may be an older store of the same value.
    /// Those that come later read nothing older.
    fn is_readable(&mut self, value: V) -> bool {
        match self.readable.iter().position(|readable| *readable == value) {
            Some(at) if !self.older.contains(&value) => {
                self.older.extend(self.readable.drain(..at));
                true
            }
            _ => false,
        }
    }

    fn stored(&mut self, value: V, order: Ordering) {
        if order == Ordering::SeqCst {
            self.older.append(&mut self.readable);
        }
        self.readable.push(value);
    }

    /// A sequentially consistent load has read the newest value, which is returned.
    fn newest(&mut self) -> Option<V> {
        let newest = self.readable.pop();
        self.older.append(&mut self.readable);
        self.readable.extend(newest);
        newest
    }
}

macro_rules! atomic {
    ($name:ident, $type:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name {
            word: loom::sync::atomic::$name,
            /// Never locked across an access to `word`, where loom may change threads.
            notes: Mutex<Notes<$type>>,
        }

        #[allow(dead_code)]
        impl $name {
            pub(crate) fn new(value: $type) -> Self {
                let word = loom::sync::atomic::$name::new(value);
                // loom takes the value that a word begins with for one of a weaker store.
                word.store(value, Ordering::SeqCst);
                Self {
                    word,
                    notes: Mutex::new(Notes { change: None, readable: vec![value], older: Vec::new() }),
                }
            }

            /// Makes the word's accesses of one kind and order weaker.
            pub(crate) fn weaken(&self, access: Access, from: Ordering, to: Ordering) {
                self.notes.lock().unwrap().change = Some(Change { access, from, to });
            }

            fn order(&self, access: Access, order: Ordering) -> Ordering {
                self.notes.lock().unwrap().order(access, order)
            }

            fn stored(&self, value: $type, order: Ordering) {
                self.notes.lock().unwrap().stored(value, order);
            }

            pub(crate) fn load(&self, order: Ordering) -> $type {
                let order = of_load(self.order(Access::Load, order));
                let value = self.word.load(order);
                if order != Ordering::SeqCst || self.notes.lock().unwrap().is_readable(value) {
                    return value;
                }
                // Older than the last sequentially consistent store. A change that fails reads the newest value, and
                // writes nothing.
                let other = self.notes.lock().unwrap().newest().map_or(value, |newest| !newest);
                self.word
                    .compare_exchange(other, other, Ordering::Acquire, Ordering::Acquire)
                    .unwrap_or_else(|now| now)
            }

            /// The value, which no other thread stores meanwhile or might have.
            pub(crate) fn unsync_load(&self) -> $type {
                // SAFETY: loom stops the model if another thread stores meanwhile.
                unsafe { self.word.unsync_load() }
            }

            pub(crate) fn store(&self, value: $type, order: Ordering) {
                let order = self.order(Access::Store, order);
                self.word.store(value, order);
                self.stored(value, order);
            }

            fn change(
                &self,
                order: Ordering,
                next: impl Fn(&loom::sync::atomic::$name, Ordering) -> ($type, $type),
            ) -> $type {
                let order = self.order(Access::Change, order);
                let (old, new) = next(&self.word, order);
                self.stored(new, order);
                old
            }

            pub(crate) fn swap(&self, value: $type, order: Ordering) -> $type {
                self.change(order, |word, order| (word.swap(value, order), value))
            }

            pub(crate) fn fetch_max(&self, value: $type, order: Ordering) -> $type {
                self.change(order, |word, order| {
                    let old = word.fetch_max(value, order);
                    (old, old.max(value))
                })
            }

            pub(crate) fn fetch_min(&self, value: $type, order: Ordering) -> $type {
                self.change(order, |word, order| {
                    let old = word.fetch_min(value, order);
                    (old, old.min(value))
                })
            }

            pub(crate) fn fetch_add(&self, value: $type, order: Ordering) -> $type {
                self.change(order, |word, order| {
                    let old = word.fetch_add(value, order);
                    (old, old.wrapping_add(value))
                })
            }

            pub(crate) fn fetch_and(&self, value: $type, order: Ordering) -> $type {
                self.change(order, |word, order| {
                    let old = word.fetch_and(value, order);
                    (old, old & value)
                })
            }

            pub(crate) fn fetch_or(&self, value: $type, order: Ordering) -> $type {
                self.change(order, |word, order| {
                    let old = word.fetch_or(value, order);
                    (old, old | value)
                })
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $type,
                new: $type,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$type, $type> {
                let order = self.order(Access::Change, success);
                let failure = if order == success { failure } else { of_load(order) };
                let result = self.word.compare_exchange(current, new, order, failure);
                if result.is_ok() {
                    self.stored(new, order);
                }
                result
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

std::thread_local! {
    /// The fences that a mutant leaves out. Of the thread that runs a model: its threads are coroutines of that one.
    static LEFT_OUT: Cell<Option<Ordering>> = const { Cell::new(None) };
}

/// Leaves out the fences of one order until the value is dropped.
pub(crate) fn without_fences(order: Ordering) -> impl Drop {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            LEFT_OUT.set(None);
        }
    }
    LEFT_OUT.set(Some(order));
    Back
}

pub(crate) fn fence(order: Ordering) {
    if LEFT_OUT.get() != Some(order) {
        loom::sync::atomic::fence(order);
    }
}

thread_local! { static FUSE: Cell<u32> = Cell::new(u32::MAX); }

/// The payload with which a model thread dies.
#[derive(Debug)]
pub(crate) struct Died;

/// Lets the calling model thread pass `steps` fault points and die at the next.
pub(crate) fn light(steps: u32) {
    FUSE.with(|fuse| fuse.set(steps));
}

pub(crate) fn burn() {
    let left = FUSE.with(|fuse| {
        let left = fuse.get();
        if left != u32::MAX {
            fuse.set(left.wrapping_sub(1));
        }
        left
    });
    if left == 0 {
        // Not a panic that the hook hears of: it would write a backtrace for each death.
        std::panic::resume_unwind(Box::new(Died));
    }
}
