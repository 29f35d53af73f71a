//! The closures that run the iterations of one cell, and the slice of the body before them.
use super::super::rewrite::rewrite;
use super::super::slice::basis;
use super::Loop;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

impl Loop<'_> {
    /// The closure of the body; its value is that of the accumulators.
    pub(super) fn body(&self) -> TokenStream {
        let (names, iterations) = (self.names(), self.iterations());
        quote! {
            |__chunk, (#(#names,)*)| {
                #iterations
            }
        }
    }

    fn iterations(&self) -> TokenStream {
        let (root, nest) = (&self.input.root, self.nest);
        let body = nest.marked(root, &rewrite(self.input, nest.body));
        let run = nest.iterate(root, &body, |chunk| {
            self.lines.as_ref().map(|lines| lines.innermost(self.input, nest, chunk, &body))
        });
        // With a slice it gets several pieces.
        let run = match self.slice {
            Some(_) => quote!(for __chunk in __chunk { #run }),
            None => run,
        };
        let sums = self.sums();
        if sums.is_empty() {
            // A `return` that a macro hides does not compile.
            return quote!((|| { #run #root::describe::Finished })(););
        }
        quote! {
            #[allow(unused_mut)]
            let (#(mut #sums,)*) = #root::accumulate::Accumulators::identities(__accumulators);
            #run
            (#(#sums,)*)
        }
    }

    /// The slice's closure and the values it depends on, as two more arguments, if there is a slice.
    pub(super) fn keys(&self) -> Option<TokenStream> {
        let (input, nest, slice) = (self.input, self.nest, self.slice.as_ref()?);
        let names = self.names();
        let basis = basis(input, nest, slice);
        let iterate = nest.iterate(&input.root, &rewrite(input, slice), |_| None);
        Some(quote! {
            #basis,
            |__chunk, __keys| {
                #[allow(unused_variables)]
                let (#(#names,)*) = __keys;
                #[allow(unused, unreachable_code, clippy::all)]
                for __chunk in __chunk { #iterate }
            },
        })
    }

    /// Unpacks the call's value: that of a single accumulator comes without its tuple.
    pub(super) fn value(&self) -> TokenStream {
        match &self.sums()[..] {
            [one] => quote!(.map(|(#one,)| #one)),
            _ => quote!(),
        }
    }

    fn sums(&self) -> Vec<&Ident> {
        self.input.accumulators.iter().map(|accumulator| &accumulator.name).collect()
    }
}
