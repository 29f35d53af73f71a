//! The iteration space and the arrays, as arguments of the call.
use super::super::clauses::{Array, Treatment};
use super::super::nest::Space;
use super::Loop;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;
use syn::spanned::Spanned;

impl Loop<'_> {
    pub(super) fn space(&self) -> TokenStream {
        let root = &self.input.root;
        match &self.nest.space {
            Space::Entries { array, .. } => {
                let clause = clause("__entries", array.span());
                quote!((#array).#clause())
            }
            Space::Ranges(ranges) => quote!(&#root::execute::Ranges([#(#ranges),*])),
        }
    }

    pub(super) fn arrays(&self) -> TokenStream {
        let arrays = self.input.arrays.iter().map(array);
        quote!((#(#arrays,)*))
    }
}

fn array(array: &Array) -> TokenStream {
    let name = &array.name;
    let place = array.place.as_ref().map_or_else(|| quote!(#name), |place| quote!((#place)));
    let method = match (array.treatment, array.written) {
        (Treatment::Relaxed, _) => "__relax",
        (Treatment::Buffered, _) => "__buffer",
        (Treatment::Served, _) => "__serve",
        (Treatment::Kept, true) => "__write",
        (Treatment::Kept, false) => "__read",
    };
    let method = clause(method, name.span());
    quote!(#place.#method())
}

/// A method of `describe::Clauses`, located where the array is named: the compiler points there if it is something else.
fn clause(method: &str, span: Span) -> Ident {
    Ident::new(method, Span::call_site().located_at(span))
}
