//! What `parallel_for!` expands to, besides the call itself: the pieces of a description. Not for programs.
use crate::accumulate::Fold;
use crate::loop_nest::{Access, Affine, LoopNest, LoopVar, Mode, Subscript};

/// A sum of products: a number, and values from outside the loop.
pub type Products<'a> = &'a [(i64, &'a [i64])];

fn sum(products: Products<'_>) -> Option<i64> {
    products.iter().try_fold(0i64, |sum, (factor, values)| {
        let product = values.iter().try_fold(*factor, |product, value| product.checked_mul(*value))?;
        sum.checked_add(product)
    })
}

/// An affine form; `None` if it overflows.
pub fn affine(constant: Products<'_>, factors: &[(usize, Products<'_>)]) -> Option<Affine> {
    let mut form = Affine::constant(sum(constant)?);
    for (variable, products) in factors {
        if form.coefficients.len() <= *variable {
            form.coefficients.resize(variable + 1, 0);
        }
        let factor = &mut form.coefficients[*variable];
        *factor = factor.checked_add(sum(products)?)?;
    }
    Some(form)
}

/// One index.
pub fn index(form: Option<Affine>) -> Subscript {
    form.map_or(Subscript::Unknown, Subscript::Index)
}

/// `first..last`.
pub fn range(first: Option<Affine>, last: Option<Affine>) -> Subscript {
    first.zip(last).map_or(Subscript::Unknown, |(first, last)| Subscript::Range(first, last))
}

/// An index that is not known.
pub fn anything() -> Subscript {
    Subscript::Unknown
}

/// The variable of a loop inside the body: it runs from the least value of `first` to the greatest of `last`.
pub fn inner(nest: &mut LoopNest, name: &str, first: Option<Affine>, last: Option<Affine>) {
    let bounds = least_and_greatest(nest, first.as_ref())
        .zip(least_and_greatest(nest, last.as_ref()))
        .map(|((start, _), (_, end))| (start, end.max(start)));
    nest.inner.push(LoopVar { name: name.into(), bounds });
}

fn least_and_greatest(nest: &LoopNest, form: Option<&Affine>) -> Option<(i64, i64)> {
    let form = form?;
    let (mut least, mut greatest) = (form.constant, form.constant);
    for (variable, factor) in nest.dims.iter().chain(&nest.inner).zip(&form.coefficients) {
        if *factor == 0 {
            continue;
        }
        let (start, end) = variable.bounds?;
        // Where the variable takes no value, nothing is run, and any bounds will do.
        let (a, b) = (factor.checked_mul(start)?, factor.checked_mul(end.checked_sub(1)?.max(start))?);
        least = least.checked_add(a.min(b))?;
        greatest = greatest.checked_add(a.max(b))?;
    }
    Some((least, greatest))
}

/// Adds an access. `row` says that the last dimension is not given and means all of it; no subscripts at all mean
/// anything in every dimension.
pub fn access(
    nest: &mut LoopNest,
    array: usize,
    subscripts: &[Subscript],
    row: bool,
    mode: Mode,
    text: &str,
    line: u32,
) {
    let mut subscripts = subscripts.to_vec();
    if subscripts.is_empty() {
        subscripts = vec![Subscript::Unknown; nest.arrays[array].shape.len()];
    } else if row {
        subscripts.push(Subscript::Full);
    }
    nest.accesses.push(Access { array, subscripts, mode, text: text.into(), line });
}

/// A fold, with the types of its function known.
pub fn fold<T, F: Fn(T, T) -> T>(identity: T, combine: F) -> Fold<T, F> {
    Fold(identity, combine)
}
