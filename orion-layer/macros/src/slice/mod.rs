//! The slice of a body: the statements on which the subscripts of some arrays depend, without what depends on values
//! that the loop changes (Weiser, 1981; for prefetching, Wei et al., 2019).
//!
//! It is run before the body, for many iterations at once, and names the keys that these will use. It need not be exact: of
//! a key that it names in vain nothing comes but a fetch, and one that it does not name is looked up. So a branch whose
//! condition depends on served values is taken as if it were both ways. But a subscript that depends on them, or a loop
//! whose turns do, cannot be known before: that is an error, with advice.
//!
//! Names are followed by their spelling: two variables of one name count as one.
//!
//! A loop that serves nothing, and has subscripts of written arrays that come from data, has a slice for these arrays: by it the
//! runtime inspects which rows and elements each iteration touches. There, a slice that cannot be made is no error: the loop
//! runs serially, and its explanation says why.
mod basis;
mod emit;
mod inspected;
mod loops;
mod names;
mod taint;

pub(crate) use self::basis::basis;

use self::emit::Emitter;
use self::names::Mutable;
use self::taint::Taint;
use super::clauses::{Input, Treatment};
use super::nest::Nest;
use syn::{Block, Result, parse_quote};

/// The slice of a loop's body.
pub(crate) enum Sliced {
    /// The loop needs none.
    Nothing,
    /// The statements that name keys.
    Keys(Block),
    /// The loop's accesses cannot be known before it runs: why not.
    Refused(String),
}

/// The slice of the loop's body. `is_irregular` says whether subscripts of written arrays come from data.
pub(crate) fn slice(input: &Input, nest: &Nest<'_>, is_irregular: bool) -> Result<Sliced> {
    let serves = input.arrays.iter().any(|array| array.treatment == Treatment::Served);
    if serves && input.prefetch {
        return emitted(input, nest, Treatment::Served).map(Sliced::Keys);
    }
    let is_kept = input.arrays.iter().all(|array| array.treatment == Treatment::Kept);
    if !is_irregular || !is_kept || input.schedule.is_some() {
        return Ok(Sliced::Nothing);
    }
    Ok(match emitted(input, nest, Treatment::Kept) {
        Ok(slice) => match inspected::once(nest.body, &slice) {
            Some(why) => Sliced::Refused(why),
            None => Sliced::Keys(slice),
        },
        Err(error) => Sliced::Refused(inspected::reason(&error)),
    })
}

/// The slice for the arrays of this treatment: of those that are kept, the written ones.
fn emitted(input: &Input, nest: &Nest<'_>, of: Treatment) -> Result<Block> {
    let mutable = Mutable::of(nest.body);
    let taint = Taint::of(input, nest.body, &mutable);
    let mut slice = Emitter::new(input, of, &taint, &mutable).run(nest.body)?;
    slice.stmts.insert(0, parse_quote!(let mut __turns = 0u32;));
    Ok(slice)
}
