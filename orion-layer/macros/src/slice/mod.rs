//! The slice of a body: the statements on which the subscripts of served arrays depend, without what depends on values
//! that the loop changes (Weiser, 1981; for prefetching, Wei et al., 2019).
//!
//! It is run before the body, for many iterations at once, and names the keys that these will use. It need not be exact: of
//! a key that it names in vain nothing comes but a fetch, and one that it does not name is looked up. So a branch whose
//! condition depends on served values is taken as if it were both ways. But a subscript that depends on them, or a loop
//! whose turns do, cannot be known before: that is an error, with advice.
//!
//! Names are followed by their spelling: two variables of one name count as one.
mod basis;
mod emit;
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

/// The slice of the loop's body; `None` if the loop serves nothing, or looks everything up.
pub(crate) fn slice(input: &Input, nest: &Nest<'_>) -> Result<Option<Block>> {
    let serves = input.arrays.iter().any(|array| array.treatment == Treatment::Served);
    if !serves || !input.prefetch {
        return Ok(None);
    }
    let mutable = Mutable::of(nest.body);
    let taint = Taint::of(input, nest.body, &mutable);
    let mut slice = Emitter::new(input, &taint, &mutable).run(nest.body)?;
    slice.stmts.insert(0, parse_quote!(let mut __turns = 0u32;));
    Ok(Some(slice))
}
