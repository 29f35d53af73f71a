//! The expansion of `parallel_for!`: see `hectare_orion::parallel_for`, which is how it is reached.
//!
//! The macro reads a serial loop, and writes a call of `Context::run_loop`: the loop's dimensions (`nest`), what
//! its body does to which array (`walk`, by way of `scope` and `form`), and the body itself, unchanged but for
//! what it adds to accumulators (`accumulators`). It decides nothing: dependences and schedules are found at run
//! time from the description. What it cannot describe is an error, or a subscript that says "anything".
mod accumulators;
mod clauses;
mod expand;
mod form;
mod nest;
mod scope;
mod text;
mod walk;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Not to be called directly: `parallel_for!` of `hectare_orion` passes the path of that crate in front.
#[doc(hidden)]
#[proc_macro]
pub fn __parallel_for(input: TokenStream) -> TokenStream {
    let mut input = parse_macro_input!(input as clauses::Input);
    expand::expand(&mut input).unwrap_or_else(|error| error.to_compile_error()).into()
}
