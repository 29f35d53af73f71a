//! Arrays whose number of dimensions is known only at run time.
use hectare_dsm::Worker;
use hectare_orion::execute::{
    AnyArrays, ArrayArg, ArrayTrace, Arrays, Family, KeyNotes, LoopArray, Of, PassTrace,
};
use hectare_orion::{Context, DistArray, Result, View, ViewMut};
use std::ops::Range;

/// An array of one to three dimensions.
#[derive(Debug)]
pub enum Array {
    One(DistArray<u64, 1>),
    Two(DistArray<u64, 2>),
    Three(DistArray<u64, 3>),
}

fn flat(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |place, (extent, at)| place * extent + at)
}

impl Array {
    /// Makes one, of which element `place` (in row-major order) is `value(place)`.
    pub fn make(context: &mut Context<'_>, shape: &[usize], value: impl Fn(usize) -> u64) -> Result<Array> {
        let at = |index: &[usize]| value(flat(shape, index));
        Ok(match *shape {
            [a] => Array::One(context.from_fn([a], |index| at(&index))?),
            [a, b] => Array::Two(context.from_fn([a, b], |index| at(&index))?),
            [a, b, c] => Array::Three(context.from_fn([a, b, c], |index| at(&index))?),
            _ => panic!("a shape of one to three dimensions: {shape:?}"),
        })
    }

    pub fn to_vec(&self, context: &Context<'_>) -> Result<Vec<u64>> {
        match self {
            Array::One(array) => array.to_vec(context),
            Array::Two(array) => array.to_vec(context),
            Array::Three(array) => array.to_vec(context),
        }
    }

    pub fn delete(self, context: &mut Context<'_>) -> Result<()> {
        match self {
            Array::One(array) => array.delete(context),
            Array::Two(array) => array.delete(context),
            Array::Three(array) => array.delete(context),
        }
    }

    /// As it is passed to a loop.
    pub fn argument(&mut self, written: bool) -> Argument<'_> {
        match (self, written) {
            (Array::One(array), true) => Argument::W1(array),
            (Array::Two(array), true) => Argument::W2(array),
            (Array::Three(array), true) => Argument::W3(array),
            (Array::One(array), false) => Argument::R1(array),
            (Array::Two(array), false) => Argument::R2(array),
            (Array::Three(array), false) => Argument::R3(array),
        }
    }
}

macro_rules! arrays {
    ($($read:ident $write:ident $n:literal $index:pat, $key:expr;)*) => {
        /// An array as it is passed to a loop.
        #[derive(Debug)]
        pub enum Argument<'x> {
            $($read(&'x DistArray<u64, $n>), $write(&'x mut DistArray<u64, $n>),)*
        }

        /// The accesses that a slice announces to one array.
        #[derive(Debug)]
        pub enum Named<'a> {
            /// Of an array that is only read.
            Nothing,
            $($write(Of<'a, <&'a mut DistArray<u64, $n> as ArrayArg>::Keys>),)*
        }

        impl Named<'_> {
            pub fn name(&self, index: &[usize], writes: bool) {
                match (self, index) {
                    (Named::Nothing, _) => {}
                    $((Named::$write(view), $index) => {
                        if writes { view.element_mut($key) } else { view.element($key) }
                    })*
                    _ => panic!("{} subscripts for another shape", index.len()),
                }
            }
        }

        /// The view of a body.
        #[derive(Debug)]
        pub enum Seen<'a> {
            $($read(View<'a, u64, $n>), $write(ViewMut<'a, u64, $n>),)*
        }

        impl Argument<'_> {
            fn control(&mut self) -> &mut dyn LoopArray {
                match self {
                    $(Argument::$read(array) => array, Argument::$write(array) => array,)*
                }
            }

            fn number(&self) -> (u64, bool) {
                match self {
                    $(Argument::$read(array) => (LoopArray::number(array), false),
                      Argument::$write(array) => (LoopArray::number(array), true),)*
                }
            }

            fn names<'a>(&'a mut self, worker: &'a Worker, notes: KeyNotes<'a>) -> Result<Named<'a>> {
                Ok(match self {
                    $(Argument::$read(_) => Named::Nothing,
                      Argument::$write(array) => Named::$write(array.keys(worker, notes)?),)*
                })
            }

            fn view<'a>(
                &'a mut self,
                worker: &'a Worker,
                parts: Range<usize>,
                trace: ArrayTrace<'a>,
            ) -> Result<Seen<'a>> {
                Ok(match self {
                    $(Argument::$read(array) => Seen::$read(array.view(worker, parts, trace)?),
                      Argument::$write(array) => Seen::$write(array.view(worker, parts, trace)?),)*
                })
            }
        }

        impl Seen<'_> {
            pub fn get(&self, index: &[usize]) -> u64 {
                match (self, index) {
                    $((Seen::$read(view), $index) => view[$key], (Seen::$write(view), $index) => view[$key],)*
                    _ => panic!("{} subscripts for another shape", index.len()),
                }
            }

            pub fn set(&mut self, index: &[usize], value: u64) {
                match (self, index) {
                    $((Seen::$write(view), $index) => view[$key] = value,)*
                    _ => panic!("{} subscripts for another shape, or an array that is only read", index.len()),
                }
            }
        }
    };
}
arrays! {
    R1 W1 1 &[a], [a];
    R2 W2 2 &[a, b], [a, b];
    R3 W3 3 &[a, b, c], [a, b, c];
}

/// The arrays of a loop, any number of them.
#[derive(Debug)]
pub struct Arguments<'x>(pub Vec<Argument<'x>>);

/// The views of any number of arrays.
#[derive(Debug)]
pub struct ManySeen;

impl Family for ManySeen {
    type Of<'a> = Vec<Seen<'a>>;
}

/// The accesses that a slice announces to any number of arrays.
#[derive(Debug)]
pub struct ManyNamed;

impl Family for ManyNamed {
    type Of<'a> = Vec<Named<'a>>;
}

impl AnyArrays for Arguments<'_> {
    fn each(&mut self) -> Vec<&mut dyn LoopArray> {
        self.0.iter_mut().map(Argument::control).collect()
    }

    fn numbers(&self) -> Vec<(u64, bool)> {
        self.0.iter().map(Argument::number).collect()
    }
}

impl Arrays for Arguments<'_> {
    type Views = ManySeen;
    type Keys = ManyNamed;

    fn keys<'a>(&'a mut self, worker: &'a Worker, notes: KeyNotes<'a>) -> Result<Vec<Named<'a>>> {
        let each = self.0.iter_mut().enumerate();
        each.map(|(array, argument)| argument.names(worker, notes.array(array))).collect()
    }

    fn views<'a>(
        &'a mut self,
        worker: &'a Worker,
        parts: &[Range<usize>],
        trace: PassTrace<'a>,
    ) -> Result<Of<'a, ManySeen>> {
        let each = self.0.iter_mut().zip(parts).enumerate();
        each.map(|(array, (argument, parts))| argument.view(worker, parts.clone(), trace.of(array))).collect()
    }
}
