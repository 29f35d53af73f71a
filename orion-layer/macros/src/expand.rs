//! The call that a loop becomes.
use super::accumulators::{is, rewrite, tuple};
use super::clauses::Input;
use super::nest::{Nest, Space};
use super::walk::Walker;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Ident, Result};

/// Writes the call of `Context::run_loop`.
pub(crate) fn expand(input: &mut Input) -> Result<TokenStream> {
    check_space(input)?;
    // The array that the loop runs over is none that its body touches.
    let over = input.body.expr.clone();
    input.arrays.retain(|array| !is(&over, &array.name));
    let input = &*input;
    let nest = Nest::of(input)?;
    let mut walker = Walker::new(input, &nest);
    let invariants = walker.walk(nest.body)?;
    let description = &walker.description;
    let Input { root, context, ordered, arrays, accumulators, schedule, .. } = input;
    let names: Vec<&Ident> = arrays.iter().map(|array| &array.name).collect();
    let array_names = names.iter().map(ToString::to_string);
    let passed = arrays.iter().map(|array| {
        let name = &array.name;
        let place = array.place.as_ref().map_or_else(|| quote!(#name), |place| quote!((#place)));
        if array.written { quote!(#place.__array_mut()) } else { quote!(#place.__array()) }
    });
    let order = if *ordered { quote!(Ordered) } else { quote!(Unordered) };
    let variables = nest.variables.iter().map(ToString::to_string);
    let schedule = match schedule {
        Some(schedule) => quote!(::core::option::Option::Some(&#schedule as &dyn #root::schedule::Schedule)),
        None => quote!(::core::option::Option::None),
    };
    let space = match &nest.space {
        Space::Entries { array, .. } => quote!((#array).__entries()),
        Space::Ranges(ranges) => quote!(&#root::execute::Ranges([#(#ranges),*])),
    };
    let sums: Vec<&Ident> = accumulators.iter().map(|accumulator| &accumulator.name).collect();
    let value = match &sums[..] {
        [one] => quote!(.map(|(#one,)| #one)),
        _ => quote!(),
    };
    let (begin, end) = match sums.is_empty() {
        true => (quote!(), quote!()),
        false => (
            quote! {
                #[allow(unused_mut)]
                let (#(mut #sums,)*) = #root::accumulate::Accumulators::identities(&__accumulators);
            },
            quote!((#(#sums,)*)),
        ),
    };
    let tuple = tuple(root, accumulators);
    let body = rewrite(root, accumulators, nest.body);
    let run = nest.iterate(root, &body.to_token_stream());
    Ok(quote! {{
        let __accumulators = #tuple;
        let __invariants = [#((#invariants) as i64),*];
        let __head = #root::execute::LoopHead {
            site: #root::Site::here(),
            order: #root::loop_nest::Order::#order,
            variables: &[#(#variables),*],
            arrays: &[#(#array_names),*],
            invariants: &__invariants,
            schedule: #schedule,
        };
        #context.run_loop(
            &__head,
            #space,
            (#(#passed,)*),
            __accumulators,
            &|__nest: &mut #root::loop_nest::LoopNest| {
                let __invariants = &__invariants;
                let _ = (&__nest, __invariants);
                #(#description)*
            },
            |__chunk, (#(#names,)*)| {
                #begin
                #run
                #end
            },
        )#value
    }})
}

fn check_space(input: &Input) -> Result<()> {
    match input.arrays.iter().find(|array| array.written && is(&input.body.expr, &array.name)) {
        Some(array) => Err(Error::new(
            array.name.span(),
            format!(
                "the loop runs over the entries of `{0}`, which stay as they are: write to another array, or make a new \
                 one by `{0}.map(..)`",
                array.name
            ),
        )),
        None => Ok(()),
    }
}
