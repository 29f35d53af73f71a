//! `__invariants` and `__head`: the values that the runtime knows a loop by.
use super::super::clauses::{Input, Kind, Treatment};
use super::super::text::text;
use super::Loop;
use fnv::FnvHasher;
use proc_macro2::TokenStream;
use quote::quote;
use std::hash::Hasher;
use syn::Index;

impl Loop<'_> {
    /// The variables of the expansion in front of the call.
    pub(super) fn bindings(&self) -> TokenStream {
        let (root, invariants) = (&self.input.root, &self.invariants);
        let fingerprint = self.fingerprint();
        let head = self.head();
        quote! {
            #[allow(unused_imports)]
            use #root::describe::{
                Clauses as _, OfInteger as _, OfAnything as _, OfHash as _, OfOther as _, OfPlain as _, OfNothingPlain as _,
            };
            let __invariants = [
                #root::describe::Invariant::fingerprint(#fingerprint),
                #((&#root::describe::Captured(&(#invariants))).invariant()),*
            ];
            let __key = __invariants.map(#root::describe::Invariant::key);
            let __head = #head;
        }
    }

    fn head(&self) -> TokenStream {
        let root = &self.input.root;
        let order = order(self.input);
        let variables = self.nest.variables.iter().map(ToString::to_string);
        let array_names = self.names().into_iter().map(ToString::to_string);
        let captured = &self.captured;
        let captured_text = captured.iter().map(text);
        let (lengths, length_text) = lengths(self.input);
        let schedule = schedule(self.input);
        let relax = relax(self.input);
        quote! {
            #root::execute::LoopHead {
                site: #root::Site::here(),
                order: #root::loop_nest::Order::#order,
                variables: &[#(#variables),*],
                arrays: &[#(#array_names),*],
                invariants: __key.as_flattened(),
                captured: &[
                    #((#captured_text, (&#root::describe::Captured(&(#captured))).plain()),)*
                    #((#length_text, (&#root::describe::Captured(&(#lengths))).plain()),)*
                ],
                schedule: #schedule,
                relax: #relax,
            }
        }
    }

    /// A number that tells one description from another: two loops of one macro stand at one place of the source.
    fn fingerprint(&self) -> i64 {
        let (order, arrays, description) = (order(self.input), self.names(), &self.description);
        let mut hash = FnvHasher::default();
        hash.write(quote!(#order [#(#arrays),*] #(#description)*).to_string().as_bytes());
        hash.finish() as i64
    }
}

/// The lengths of sums that are arrays, which all workers have to agree on, and how messages name them.
fn lengths(input: &Input) -> (Vec<TokenStream>, Vec<String>) {
    let each = input.accumulators.iter().enumerate();
    each.filter(|(_, accumulator)| matches!(accumulator.kind, Kind::Array { .. }))
        .map(|(number, accumulator)| {
            let index = Index::from(number);
            (quote!(__accumulators.#index.len()), format!("{}.len()", accumulator.name))
        })
        .unzip()
}

fn order(input: &Input) -> TokenStream {
    if input.ordered { quote!(Ordered) } else { quote!(Unordered) }
}

fn schedule(input: &Input) -> TokenStream {
    let root = &input.root;
    match &input.schedule {
        Some(schedule) => quote!(::core::option::Option::Some(&#schedule as &dyn #root::schedule::Schedule)),
        None => quote!(::core::option::Option::None),
    }
}

/// The consistency of relaxed arrays: bulk-synchronous, if there are any and nothing is said.
fn relax(input: &Input) -> TokenStream {
    let root = &input.root;
    if input.arrays.iter().all(|array| array.treatment == Treatment::Kept) {
        return quote!(#root::relax::Relaxation::default());
    }
    let consistency = match &input.consistency {
        Some(consistency) => quote!(#consistency),
        None => quote!(#root::relax::Consistency::Bsp),
    };
    let every = match &input.every {
        Some(every) => quote!(#root::relax::Every::from(#every)),
        None => quote!(::core::default::Default::default()),
    };
    let tail = match &input.tail {
        Some(tail) => quote!(#tail),
        None => quote!(#root::relax::Tail::NONE),
    };
    quote!(#root::relax::Relaxation { consistency: #consistency, every: #every, tail: #tail })
}
