//! The expansion of `parallel_for!`: see `hectare_orion::parallel_for`, which is how it is reached.
//!
//! The macro reads a serial loop, and writes a call of `Context::run_loop`: the loop's dimensions (`nest`), what its
//! body does to which array (`walk`, by way of `scope` and `form`), and the body itself, unchanged but for what it adds
//! to accumulators (`accumulators`) and how it ends an iteration (`rewrite`). It decides nothing: dependences and
//! schedules are found at run time from the description. What it cannot describe is an error, or a subscript that says "anything".
mod accumulators;
mod advice;
mod affine;
mod clauses;
mod expand;
mod form;
mod hygiene;
mod lines;
mod nest;
mod rewrite;
mod scope;
mod slice;
mod text;
mod walk;

use proc_macro::TokenStream;

/// Not to be called directly: `parallel_for!` of `hectare_orion` passes the path of that crate in front.
#[doc(hidden)]
#[proc_macro]
pub fn __parallel_for(input: TokenStream) -> TokenStream {
    let mut ambiguous = hygiene::Ambiguous::default();
    let tokens = hygiene::plain(input.into(), &mut ambiguous);
    let mut input = match syn::parse2::<clauses::Input>(tokens.clone()) {
        Ok(input) => input,
        Err(error) => return advice::index_list(tokens).unwrap_or(error).into_compile_error().into(),
    };
    input.ambiguous = ambiguous;
    let errors = |error: syn::Error| {
        // Several errors are one expression only as a block.
        let errors = error.into_compile_error();
        quote::quote!({ #errors })
    };
    expand::expand(&mut input).unwrap_or_else(errors).into()
}
