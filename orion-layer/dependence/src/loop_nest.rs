//! The description of a loop: its dimensions, and what its body does to which array at which subscripts.
//!
//! `parallel_for!` makes one from source text; one can also be built by hand. Everything else in this crate
//! (dependences, schedules, placement, explanations) works on this description and knows nothing of source
//! text.
use std::fmt;

/// Whether iterations must look as if they ran in the order of the serial program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Order {
    /// In lexicographic order of their indices.
    Ordered,
    /// In any serial order, but as if in some serial order.
    Unordered,
}

/// A loop variable.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LoopVar {
    /// Its name in the source.
    pub name: String,
    /// The values that it takes, `start..end`; `None` where they are not known before the loop runs.
    pub bounds: Option<(i64, i64)>,
}

/// `constant + Σ coefficients[k] · variable k`: over the dimensions first, then over the inner variables.
/// Missing coefficients are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Affine {
    /// The constant term.
    pub constant: i64,
    /// One factor per variable of the nest ([`LoopNest::dims`], then [`LoopNest::inner`]).
    pub coefficients: Vec<i64>,
}

impl Affine {
    /// A constant.
    pub fn constant(constant: i64) -> Affine {
        Affine { constant, coefficients: Vec::new() }
    }

    /// Variable `index` of the nest.
    pub fn var(index: usize) -> Affine {
        let mut coefficients = vec![0; index + 1];
        coefficients[index] = 1;
        Affine { constant: 0, coefficients }
    }

    /// The factor of variable `index`.
    pub fn coefficient(&self, index: usize) -> i64 {
        self.coefficients.get(index).copied().unwrap_or(0)
    }

    /// Its value for these variables; `None` on overflow.
    pub fn eval(&self, variables: &[i64]) -> Option<i64> {
        let products = self.coefficients.iter().zip(variables).map(|(c, v)| c.checked_mul(*v));
        products.into_iter().try_fold(self.constant, |sum, product| sum.checked_add(product?))
    }

    /// `self * factor`.
    pub fn times(&self, factor: i64) -> Affine {
        Affine {
            constant: self.constant.wrapping_mul(factor),
            coefficients: self.coefficients.iter().map(|c| c.wrapping_mul(factor)).collect(),
        }
    }

    /// `self + other`.
    pub fn plus(&self, other: &Affine) -> Affine {
        let len = self.coefficients.len().max(other.coefficients.len());
        Affine {
            constant: self.constant.wrapping_add(other.constant),
            coefficients: (0..len).map(|k| self.coefficient(k).wrapping_add(other.coefficient(k))).collect(),
        }
    }
}

/// The subscript of an access in one dimension of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Subscript {
    /// One index.
    Index(Affine),
    /// `start..end`.
    Range(Affine, Affine),
    /// The whole dimension.
    Full,
    /// Anything: it depends on data.
    Unknown,
}

/// The mode of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Mode {
    /// It only reads.
    Read,
    /// It only writes.
    Write,
    /// It reads and writes, or may do either.
    Update,
}

impl Mode {
    /// Whether it may write.
    pub fn writes(self) -> bool {
        self != Mode::Read
    }

    /// Whether it may read.
    pub fn reads(self) -> bool {
        self != Mode::Write
    }
}

/// One access of the body to an array.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Access {
    /// Index into [`LoopNest::arrays`].
    pub array: usize,
    /// One subscript per dimension of the array.
    pub subscripts: Vec<Subscript>,
    /// Its mode.
    pub mode: Mode,
    /// The access as the user wrote it, for explanations.
    pub text: String,
    /// The line in the source file, 0 if there is none.
    pub line: u32,
}

/// An array that the body names.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NamedArray {
    /// Its name in the source.
    pub name: String,
    /// Its extent in each dimension.
    pub shape: Vec<usize>,
    /// Bytes of one element.
    pub element_bytes: usize,
}

/// The iteration space of a loop.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Space {
    /// Every point within the bounds of the dimensions.
    Dense,
    /// The entries of a sparse array: its name, and how many; at most one iteration per entry. (Two entries may
    /// have the same index.)
    Entries {
        /// The array's name.
        array: String,
        /// How many entries.
        count: usize,
    },
}

/// A loop over one or more dimensions, and the accesses of its body.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LoopNest {
    /// How errors and explanations call the loop: usually `file:line`.
    pub name: String,
    /// Ordered or not.
    pub order: Order,
    /// Its iteration space.
    pub space: Space,
    /// The dimensions that may be spread over workers, outermost first.
    pub dims: Vec<LoopVar>,
    /// Variables of loops inside the body, which one iteration runs through by itself.
    pub inner: Vec<LoopVar>,
    /// The arrays that the body names.
    pub arrays: Vec<NamedArray>,
    /// The accesses of the body.
    pub accesses: Vec<Access>,
    /// The arrays whose dependences are given up, by their numbers: the executor sets this for loops that relax.
    pub relaxed: Vec<usize>,
    /// Into how many cells the dimension that is cut is cut at least: 0 where that does not matter.
    pub least_cells: usize,
    /// Whether what its iterations give is to be combined in their order: the loop is ordered, and collects, or accumulates by a
    /// function that may not commute.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub combines_in_order: bool,
    /// Why what its iterations touch cannot be found out before it runs, if some subscripts of written arrays come from data and
    /// it cannot: in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uninspected: Option<String>,
}

impl LoopNest {
    /// A nest without accesses.
    pub fn new(name: impl Into<String>, order: Order, space: Space, dims: Vec<LoopVar>) -> LoopNest {
        let (name, inner, arrays, accesses, relaxed) =
            (name.into(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        LoopNest {
            name,
            order,
            space,
            dims,
            inner,
            arrays,
            accesses,
            relaxed,
            least_cells: 0,
            combines_in_order: false,
            uninspected: None,
        }
    }

    /// The accesses to one array.
    pub fn accesses_of(&self, array: usize) -> impl Iterator<Item = &Access> {
        self.accesses.iter().filter(move |access| access.array == array)
    }

    /// Whether the body may write the array.
    pub fn is_written(&self, array: usize) -> bool {
        self.accesses_of(array).any(|access| access.mode.writes())
    }

    /// The name of variable `index`: of a dimension, or of an inner loop.
    pub fn variable(&self, index: usize) -> &LoopVar {
        if index < self.dims.len() { &self.dims[index] } else { &self.inner[index - self.dims.len()] }
    }

    /// The affine form in the names of the source, such as `2*i - j + 1`.
    pub fn show(&self, affine: &Affine) -> String {
        let mut text = String::new();
        for (index, &coefficient) in affine.coefficients.iter().enumerate().filter(|(_, c)| **c != 0) {
            let name = &self.variable(index).name;
            let sign = if coefficient < 0 { "-" } else { "+" };
            match (text.is_empty(), coefficient < 0) {
                (true, false) => {}
                (true, true) => text.push('-'),
                (false, _) => text.push_str(&format!(" {sign} ")),
            }
            match coefficient.unsigned_abs() {
                1 => text.push_str(name),
                factor => text.push_str(&format!("{factor}*{name}")),
            }
        }
        match (text.is_empty(), affine.constant) {
            (true, constant) => constant.to_string(),
            (false, 0) => text,
            (false, constant) if constant < 0 => format!("{text} - {}", constant.unsigned_abs()),
            (false, constant) => format!("{text} + {constant}"),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Read => "reads",
            Mode::Write => "writes",
            Mode::Update => "reads and writes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affine_forms_read_like_source() {
        let var = |name: &str| LoopVar { name: name.into(), bounds: None };
        let nest = LoopNest::new("test", Order::Ordered, Space::Dense, vec![var("i"), var("j")]);
        let form = Affine::var(0).times(2).plus(&Affine::var(1).times(-1)).plus(&Affine::constant(-3));
        assert_eq!(nest.show(&form), "2*i - j - 3");
        assert_eq!(nest.show(&Affine::var(1).times(-1)), "-j");
        assert_eq!(nest.show(&Affine::constant(-4)), "-4");
        assert_eq!(form.eval(&[5, 1]), Some(6));
        assert_eq!(form.eval(&[i64::MAX, 1]), None);
    }
}
