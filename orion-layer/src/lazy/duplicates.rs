//! Rules for entries that get the same key.

/// The resolution of an entry that meets an earlier one of the same key.
#[derive(Debug)]
pub enum Resolution<O, V> {
    /// The two are one.
    One(O),
    /// They stay two entries.
    Two(O, V),
    /// That is an error.
    Refused,
}

/// A rule for entries that get the same key. They meet in the order of where they come from in the source,
/// and those that come from one entry of it in the order in which they were made.
pub trait Duplicates<V> {
    /// The value of an entry in the end.
    type Out;
    /// Whether entries with the keys of the source may stay as they are, two of one key included.
    const KEEPS: bool = false;

    /// Of the first entry of a key.
    fn first(&mut self, value: V) -> Self::Out;

    /// Of each further one.
    fn resolve(&mut self, before: Self::Out, value: V) -> Resolution<Self::Out, V>;

    /// If entries of one worker may meet before they are with those of others, and in any order: what becomes of two.
    fn early(&mut self) -> Option<&mut dyn FnMut(V, V) -> V> {
        None
    }
}

/// An error that names the key.
#[derive(Clone, Copy, Debug)]
pub struct RejectDuplicates;

impl<V> Duplicates<V> for RejectDuplicates {
    type Out = V;
    const KEEPS: bool = true;

    fn first(&mut self, value: V) -> V {
        value
    }

    fn resolve(&mut self, _before: V, _value: V) -> Resolution<V, V> {
        Resolution::Refused
    }
}

/// All of them are entries of the array.
#[derive(Clone, Copy, Debug)]
pub struct KeepAll;

impl<V> Duplicates<V> for KeepAll {
    type Out = V;
    const KEEPS: bool = true;

    fn first(&mut self, value: V) -> V {
        value
    }

    fn resolve(&mut self, before: V, value: V) -> Resolution<V, V> {
        Resolution::Two(before, value)
    }
}

/// A list of them.
#[derive(Clone, Copy, Debug)]
pub struct Group;

impl<V> Duplicates<V> for Group {
    type Out = Vec<V>;

    fn first(&mut self, value: V) -> Vec<V> {
        vec![value]
    }

    fn resolve(&mut self, mut before: Vec<V>, value: V) -> Resolution<Vec<V>, V> {
        before.push(value);
        Resolution::One(before)
    }
}

/// A function of them, from the first to the last.
#[derive(Debug)]
pub struct Combine<F>(pub(super) F);

impl<V, F: FnMut(V, V) -> V> Duplicates<V> for Combine<F> {
    type Out = V;

    fn first(&mut self, value: V) -> V {
        value
    }

    fn resolve(&mut self, before: V, value: V) -> Resolution<V, V> {
        Resolution::One((self.0)(before, value))
    }
}

/// A function of them in any order and grouping.
#[derive(Debug)]
pub struct Reduce<F>(pub(super) F);

impl<V, F: FnMut(V, V) -> V> Duplicates<V> for Reduce<F> {
    type Out = V;

    fn first(&mut self, value: V) -> V {
        value
    }

    fn resolve(&mut self, before: V, value: V) -> Resolution<V, V> {
        Resolution::One((self.0)(before, value))
    }

    fn early(&mut self) -> Option<&mut dyn FnMut(V, V) -> V> {
        Some(&mut self.0)
    }
}
