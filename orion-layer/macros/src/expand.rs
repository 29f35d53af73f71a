//! The call that a loop becomes.
use super::accumulators::{is, tuple};
use super::clauses::{Input, Treatment};
use super::nest::{Nest, Space};
use super::rewrite::rewrite;
use super::slice::{basis, slice};
use super::text::text;
use super::walk::Walker;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, Ident, Result};

/// Writes the call of `Context::run_loop`.
pub(crate) fn expand(input: &mut Input) -> Result<TokenStream> {
    check_space(input)?;
    check_names(input)?;
    // The array that the loop runs over is none that its body touches.
    let over = input.body.expr.clone();
    input.arrays.retain(|array| !is(&over, &array.name));
    let input = &*input;
    let nest = Nest::of(input)?;
    let mut walker = Walker::new(input, &nest);
    let invariants = walker.walk(nest.body)?;
    let (description, captured) = (&walker.description, &walker.captured);
    let captured_text = captured.iter().map(text);
    let Input { root, context, ordered, arrays, accumulators, schedule, .. } = input;
    let names: Vec<&Ident> = arrays.iter().map(|array| &array.name).collect();
    let array_names = names.iter().map(ToString::to_string);
    let passed = arrays.iter().map(|array| {
        let name = &array.name;
        let place = array.place.as_ref().map_or_else(|| quote!(#name), |place| quote!((#place)));
        // Where it is named, so that the compiler points there if it is something else.
        let clause = match (array.treatment, array.written) {
            (Treatment::Relaxed, _) => "__relax",
            (Treatment::Buffered, _) => "__buffer",
            (Treatment::Served, _) => "__serve",
            (Treatment::Kept, true) => "__write",
            (Treatment::Kept, false) => "__read",
        };
        let clause = Ident::new(clause, Span::call_site().located_at(name.span()));
        quote!(#place.#clause())
    });
    let order = if *ordered { quote!(Ordered) } else { quote!(Unordered) };
    let variables = nest.variables.iter().map(ToString::to_string);
    let schedule = match schedule {
        Some(schedule) => quote!(::core::option::Option::Some(&#schedule as &dyn #root::schedule::Schedule)),
        None => quote!(::core::option::Option::None),
    };
    let relax = relax(input);
    let space = match &nest.space {
        Space::Entries { array, .. } => {
            let clause = Ident::new("__entries", Span::call_site().located_at(array.span()));
            quote!((#array).#clause())
        }
        Space::Ranges(ranges) => quote!(&#root::execute::Ranges([#(#ranges),*])),
    };
    let arrays_text = arrays.iter().map(|array| &array.name);
    let sums: Vec<&Ident> = accumulators.iter().map(|accumulator| &accumulator.name).collect();
    let value = match &sums[..] {
        [one] => quote!(.map(|(#one,)| #one)),
        _ => quote!(),
    };
    let tuple = tuple(root, accumulators);
    let (run_loop, keys) = match slice(input, &nest)? {
        None => (quote!(run_loop), quote!()),
        Some(keys) => {
            let basis = basis(input, &nest, &keys);
            let iterate = nest.iterate(root, &rewrite(input, &keys));
            let code = quote! {
                #basis,
                |__chunk, __keys| {
                    #[allow(unused_variables)]
                    let (#(#names,)*) = __keys;
                    #[allow(unused, unreachable_code, clippy::all)]
                    { #iterate }
                },
            };
            (quote!(run_served), code)
        }
    };
    let run = nest.iterate(root, &nest.marked(root, &rewrite(input, nest.body)));
    let run = if accumulators.is_empty() {
        // A `return` that a macro hides does not compile.
        quote!((|| { #run #root::describe::Finished })();)
    } else {
        quote! {
            #[allow(unused_mut)]
            let (#(mut #sums,)*) = #root::accumulate::Accumulators::identities(&__accumulators);
            #run
            (#(#sums,)*)
        }
    };
    let fingerprint = fingerprint(&quote!(#order [#(#arrays_text),*] #(#description)*));
    Ok(quote! {{
        let __accumulators = #tuple;
        #[allow(unused_imports)]
        use #root::describe::{
            Clauses as _, OfInteger as _, OfAnything as _, OfHash as _, OfOther as _, OfPlain as _, OfNothingPlain as _,
        };
        let __invariants = [
            #root::describe::Invariant::fingerprint(#fingerprint),
            #((&#root::describe::Captured(&(#invariants))).invariant()),*
        ];
        let __key = __invariants.map(#root::describe::Invariant::key);
        let __head = #root::execute::LoopHead {
            site: #root::Site::here(),
            order: #root::loop_nest::Order::#order,
            variables: &[#(#variables),*],
            arrays: &[#(#array_names),*],
            invariants: __key.as_flattened(),
            captured: &[#((#captured_text, (&#root::describe::Captured(&(#captured))).plain())),*],
            schedule: #schedule,
            relax: #relax,
        };
        #context.#run_loop(
            &__head,
            #space,
            (#(#passed,)*),
            __accumulators,
            &|__nest: &mut #root::loop_nest::LoopNest| {
                let __invariants = &__invariants[1..];
                let _ = (&__nest, __invariants);
                #(#description)*
            },
            #keys
            |__chunk, (#(#names,)*)| {
                #run
            },
        )#value
    }})
}

/// The consistency of relaxed arrays: bulk-synchronous, if there are any and nothing is said.
fn relax(input: &Input) -> TokenStream {
    let root = &input.root;
    if input.arrays.iter().all(|array| array.treatment == Treatment::Kept) {
        return quote!(#root::relax::Relax::default());
    }
    let consistency = match &input.consistency {
        Some(consistency) => quote!(#consistency),
        None => quote!(#root::relax::Consistency::Bsp),
    };
    let every = match &input.every {
        Some(every) => quote!(#root::relax::Every::from(#every)),
        None => quote!(::core::default::Default::default()),
    };
    quote!(#root::relax::Relax { consistency: #consistency, every: #every })
}

/// Every declared name must mean one thing wherever it is used.
fn check_names(input: &Input) -> Result<()> {
    let arrays = input.arrays.iter().map(|array| &array.name);
    let mut names = arrays.chain(input.accumulators.iter().map(|accumulator| &accumulator.name));
    match names.find(|name| input.ambiguous.contains(&name.to_string())) {
        Some(name) => Err(Error::new(
            name.span(),
            format!(
                "another `{name}` comes from another macro, and which is meant where cannot be told: give one of them \
                 another name"
            ),
        )),
        None => Ok(()),
    }
}

/// A number that tells one description from another: two loops of one macro stand at one place of the source.
fn fingerprint(description: &TokenStream) -> i64 {
    // FNV-1a.
    let text = description.to_string();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash as i64
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
