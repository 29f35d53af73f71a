//! The call that a loop becomes: `Context::run_loop`, or `run_served` if a slice of the body finds keys beforehand.
mod arguments;
mod body;
mod checks;
mod head;

use super::accumulators::{is, tuple};
use super::clauses::Input;
use super::lines::Lines;
use super::nest::Nest;
use super::slice::{Sliced, slice};
use super::walk::Walker;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Block, Expr, Ident, Result};

/// A loop that was found to be well-formed.
struct Loop<'a> {
    input: &'a Input,
    nest: &'a Nest<'a>,
    /// Code that completes the description `__nest`.
    description: Vec<TokenStream>,
    /// The values from outside that the description uses.
    invariants: Vec<Expr>,
    /// The variables from outside that the body uses, and fields of them.
    captured: Vec<Expr>,
    /// The statements that name the keys of served arrays, or of written ones whose subscripts come from data, if there are any.
    slice: Option<Block>,
    /// The lines of the innermost loop, if it has any.
    lines: Option<Lines<'a>>,
}

/// Writes the call of the runtime, or refuses the loop.
pub(crate) fn expand(input: &mut Input) -> Result<TokenStream> {
    checks::check(input)?;
    // The array that the loop runs over is none that its body touches.
    let over = input.body.expr.clone();
    input.arrays.retain(|array| !is(&over, &array.name));
    let nest = Nest::of(input)?;
    Ok(Loop::of(input, &nest)?.call())
}

impl<'a> Loop<'a> {
    fn of(input: &'a Input, nest: &'a Nest<'a>) -> Result<Loop<'a>> {
        let mut walker = Walker::new(input, nest);
        let invariants = walker.walk(nest.body)?;
        let Walker { mut description, captured, is_irregular, sites, others, mut used, .. } = walker;
        let lines = Lines::of(input, nest, &sites, &others, &mut used);
        let slice = match slice(input, nest, is_irregular)? {
            Sliced::Nothing => None,
            Sliced::Keys(slice) => Some(slice),
            Sliced::Refused(why) => {
                let root = &input.root;
                description.push(quote!(#root::describe::uninspected(__nest, #why);));
                None
            }
        };
        Ok(Loop { input, nest, description, invariants, captured, slice, lines })
    }

    /// The names of the arrays, as parameters of the closures.
    fn names(&self) -> Vec<&Ident> {
        self.input.arrays.iter().map(|array| &array.name).collect()
    }

    fn call(&self) -> TokenStream {
        let Loop { input, description, .. } = self;
        let Input { root, context, accumulators, .. } = input;
        let accumulators = tuple(root, accumulators);
        let bindings = self.bindings();
        let run_loop = if self.slice.is_some() { quote!(run_served) } else { quote!(run_loop) };
        let (space, arrays) = (self.space(), self.arrays());
        let (keys, body, value) = (self.keys(), self.body(), self.value());
        quote! {{
            // The body and the runtime have the same ones.
            let __accumulators = &#accumulators;
            #bindings
            #context.#run_loop(
                &__head,
                #space,
                #arrays,
                __accumulators,
                &|__nest: &mut #root::loop_nest::LoopNest| {
                    let __invariants = &__invariants[1..];
                    let _ = (&__nest, __invariants);
                    #(#description)*
                },
                #keys
                #body,
            )#value
        }}
    }
}
