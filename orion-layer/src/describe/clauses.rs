//! The kinds of arrays that may stand under each clause of a loop, and the compiler's message for others. For `parallel_for!`.
use crate::array::{DistArray, SparseArray, Value};
use crate::collections::{DistMap, DistVec, Key, MapArg, MapRead, Merge, VecArg, VecRead};
use crate::relax::{Additive, Apply, BufferArg, Buffered, Relaxed};
use crate::serve::{Served, ServedArg};
use hectare_dsm::Element;

/// Calls that the macro writes: each finds what a variable holds, or what it is a reference to.
pub trait Clauses {
    /// For `read`.
    #[inline]
    fn __read(&self) -> Self::Arg<'_>
    where
        Self: Read,
    {
        Read::arg(self)
    }

    /// For `write`.
    #[inline]
    fn __write(&mut self) -> Self::Arg<'_>
    where
        Self: Write,
    {
        Write::arg(self)
    }

    /// For `relax`.
    #[inline]
    fn __relax(&mut self) -> Self::Arg<'_>
    where
        Self: Relax,
    {
        Relax::arg(self)
    }

    /// For `buffer`.
    #[inline]
    fn __buffer(&mut self) -> Self::Arg<'_>
    where
        Self: Buffer,
    {
        Buffer::arg(self)
    }

    /// For `serve`.
    #[inline]
    fn __serve(&mut self) -> Self::Arg<'_>
    where
        Self: Serve,
    {
        Serve::arg(self)
    }

    /// For what a loop runs over.
    #[inline]
    fn __entries(&self) -> Self::Arg<'_>
    where
        Self: Entries,
    {
        Entries::arg(self)
    }
}

impl<A: ?Sized> Clauses for A {}

/// May stand under `read`.
#[diagnostic::on_unimplemented(
    message = "`read` cannot name a `{Self}`",
    label = "no array of the program",
    note = "a loop reads a `DistArray`, a `Buffered` or `Served` array, a `DistMap` or a `DistVec`; a sparse array is what a \
            loop runs over; other variables are used in the body without being named"
)]
pub trait Read {
    /// As it is passed.
    type Arg<'a>
    where
        Self: 'a;

    /// Passes it.
    fn arg(&self) -> Self::Arg<'_>;
}

/// May stand under `write`.
#[diagnostic::on_unimplemented(
    message = "`write` cannot name a `{Self}`",
    label = "no array that loops write",
    note = "a loop writes a `DistArray`; it contributes to a `Buffered` array, a `DistMap` or a `DistVec` under `buffer`, and to a \
            `Served` array under `serve`; the entries of a sparse array are changed by `map`"
)]
pub trait Write {
    /// As it is passed.
    type Arg<'a>
    where
        Self: 'a;

    /// Passes it.
    fn arg(&mut self) -> Self::Arg<'_>;
}

/// May stand under `relax`.
#[diagnostic::on_unimplemented(
    message = "`relax` cannot name a `{Self}`",
    label = "not a `DistArray` of numbers",
    note = "a loop relaxes a `DistArray` of numbers; a `Buffered` array, a `DistMap` or a `DistVec` stands under `buffer`, a \
            `Served` array under `serve`"
)]
pub trait Relax {
    /// As it is passed.
    type Arg<'a>
    where
        Self: 'a;

    /// Passes it.
    fn arg(&mut self) -> Self::Arg<'_>;
}

/// May stand under `buffer`.
#[diagnostic::on_unimplemented(
    message = "`buffer` cannot name a `{Self}`",
    label = "it has no rule by which contributions are merged",
    note = "give a `DistArray` one before the loop: `let mut a = w.buffered(a, Sum)?;`; to read and change it without a rule, \
            name it under `relax`; a `Served` array stands under `serve`"
)]
pub trait Buffer {
    /// As it is passed.
    type Arg<'a>
    where
        Self: 'a;

    /// Passes it.
    fn arg(&mut self) -> Self::Arg<'_>;
}

/// May stand under `serve`.
#[diagnostic::on_unimplemented(
    message = "`serve` cannot name a `{Self}`",
    label = "it is not served",
    note = "make a served array of a `DistArray` before the loop: `let mut a = w.served(a, Sum)?;`; a `Buffered` array, a `DistMap` \
            or a `DistVec` stands under `buffer`"
)]
pub trait Serve {
    /// As it is passed.
    type Arg<'a>
    where
        Self: 'a;

    /// Passes it.
    fn arg(&mut self) -> Self::Arg<'_>;
}

/// A loop may run over it.
#[diagnostic::on_unimplemented(
    message = "no loop runs over a `{Self}`",
    label = "neither a sparse array nor a range",
    note = "a loop runs over the entries of a `SparseArray`, or over a range `a..b`; the elements of a `DistArray` are reached by a \
            range of indices, the entries of a `DistMap` by `to_array`"
)]
pub trait Entries {
    /// As it is passed.
    type Arg<'a>
    where
        Self: 'a;

    /// Passes it.
    fn arg(&self) -> Self::Arg<'_>;
}

/// A reference to what may stand there, and what may stand there.
macro_rules! may_stand {
    (& $clause:ident: $([$($of:tt)*] $array:ty => $arg:ty, |$self:ident| $pass:expr;)*) => {
        $(#[diagnostic::do_not_recommend]
        impl<$($of)*> $clause for $array {
            type Arg<'a> = $arg where Self: 'a;

            #[inline]
            fn arg(&self) -> Self::Arg<'_> {
                let $self = self;
                $pass
            }
        })*

        #[diagnostic::do_not_recommend]
        impl<A: $clause + ?Sized> $clause for &A {
            type Arg<'a> = A::Arg<'a> where Self: 'a;

            #[inline]
            fn arg(&self) -> Self::Arg<'_> {
                A::arg(self)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<A: $clause + ?Sized> $clause for &mut A {
            type Arg<'a> = A::Arg<'a> where Self: 'a;

            #[inline]
            fn arg(&self) -> Self::Arg<'_> {
                A::arg(self)
            }
        }
    };
    (&mut $clause:ident: $([$($of:tt)*] $array:ty => $arg:ty, |$self:ident| $pass:expr;)*) => {
        $(#[diagnostic::do_not_recommend]
        impl<$($of)*> $clause for $array {
            type Arg<'a> = $arg where Self: 'a;

            #[inline]
            fn arg(&mut self) -> Self::Arg<'_> {
                let $self = self;
                $pass
            }
        })*

        #[diagnostic::do_not_recommend]
        impl<A: $clause + ?Sized> $clause for &mut A {
            type Arg<'a> = A::Arg<'a> where Self: 'a;

            #[inline]
            fn arg(&mut self) -> Self::Arg<'_> {
                A::arg(self)
            }
        }
    };
}

may_stand! { &Read:
    [T: Element, const N: usize] DistArray<T, N> => &'a DistArray<T, N>, |array| array;
    [T: Additive, const N: usize, A: Apply<T>] Buffered<T, N, A> => &'a DistArray<T, N>, |array| array.array();
    [T: Additive, const N: usize, A: Apply<T>] Served<T, N, A> => &'a DistArray<T, N>, |array| array.array();
    [K: Key, V: Value, M: Merge<V>] DistMap<K, V, M> => MapRead<'a, K, V, M>, |map| map.look_ups();
    [T: Value] DistVec<T> => VecRead<'a, T>, |vector| vector.reads();
}
may_stand! { &mut Write:
    [T: Element, const N: usize] DistArray<T, N> => &'a mut DistArray<T, N>, |array| array;
}
may_stand! { &mut Relax:
    [T: Additive, const N: usize] DistArray<T, N> => Relaxed<'a, T, N>, |array| array.relaxed();
}
may_stand! { &mut Buffer:
    [T: Additive, const N: usize, A: Apply<T>] Buffered<T, N, A> => BufferArg<'a, T, N, A>, |array| array.buffer();
    [K: Key, V: Value, M: Merge<V>] DistMap<K, V, M> => MapArg<'a, K, V, M>, |map| map.buffer();
    [T: Value] DistVec<T> => VecArg<'a, T>, |vector| vector.buffer();
}
may_stand! { &mut Serve:
    [T: Additive, const N: usize, A: Apply<T>] Served<T, N, A> => ServedArg<'a, T, N, A>, |array| array.serve();
}
may_stand! { &Entries:
    [T: Value, const N: usize] SparseArray<T, N> => &'a SparseArray<T, N>, |array| array;
}
