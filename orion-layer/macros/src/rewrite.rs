//! The body as it is run: what was written, but for a few places.
use super::accumulators::{Added, is};
use super::clauses::{Accumulator, Array, Input};
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprClosure, ExprForLoop, ExprLoop, ExprWhile, Ident, Index, Item, parse_quote};

/// Methods of numbers that do not change what they are called on. They are called on what cannot be written ([`rewrite`]),
/// in case an element is something else that has a method of that name.
const PURE: [&str; 58] = [
    "abs",
    "sqrt",
    "cbrt",
    "powi",
    "powf",
    "pow",
    "exp",
    "exp2",
    "exp_m1",
    "ln",
    "ln_1p",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "tanh",
    "min",
    "max",
    "clamp",
    "mul_add",
    "recip",
    "signum",
    "floor",
    "ceil",
    "round",
    "trunc",
    "is_nan",
    "is_finite",
    "to_bits",
    "wrapping_add",
    "wrapping_sub",
    "wrapping_mul",
    "wrapping_neg",
    "wrapping_shl",
    "saturating_add",
    "saturating_sub",
    "checked_add",
    "checked_sub",
    "checked_mul",
    "rotate_left",
    "rotate_right",
    "count_ones",
    "leading_zeros",
    "trailing_zeros",
    "swap_bytes",
    "abs_diff",
    "rem_euclid",
    "div_euclid",
    "clone",
    "into",
    "cmp",
    "partial_cmp",
    "total_cmp",
    "eq",
    "ne",
    "hypot",
    "len",
];

/// Whether a method does not change an element that it is called on.
pub(crate) fn is_pure(method: &Ident) -> bool {
    PURE.iter().any(|name| method == name)
}

/// Whether a place is an element, or part of one, of an array that the loop writes.
pub(crate) fn is_in_written(arrays: &[Array], expr: &Expr) -> bool {
    match expr {
        Expr::Index(index) => match arrays.iter().find(|array| is_named(&index.expr, &array.name)) {
            Some(array) => array.written,
            None => is_in_written(arrays, &index.expr),
        },
        Expr::Field(field) => is_in_written(arrays, &field.base),
        Expr::Paren(inner) => is_in_written(arrays, &inner.expr),
        Expr::Group(inner) => is_in_written(arrays, &inner.expr),
        _ => false,
    }
}

fn is_named(expr: &Expr, name: &Ident) -> bool {
    match expr {
        Expr::Paren(inner) => is_named(&inner.expr, name),
        Expr::Group(inner) => is_named(&inner.expr, name),
        _ => is(expr, name),
    }
}

struct Rewrite<'a> {
    root: &'a TokenStream,
    arrays: &'a [Array],
    accumulators: &'a [Accumulator],
    /// Loops and closures of the body around the place.
    depth: usize,
}

impl Rewrite<'_> {
    fn deeper(&mut self, act: impl FnOnce(&mut Self)) {
        self.depth += 1;
        act(self);
        self.depth -= 1;
    }
}

impl VisitMut for Rewrite<'_> {
    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_expr_for_loop_mut(&mut self, inner: &mut ExprForLoop) {
        self.visit_expr_mut(&mut inner.expr);
        self.deeper(|rewrite| rewrite.visit_block_mut(&mut inner.body));
    }

    fn visit_expr_while_mut(&mut self, inner: &mut ExprWhile) {
        self.deeper(|rewrite| visit_mut::visit_expr_while_mut(rewrite, inner));
    }

    fn visit_expr_loop_mut(&mut self, inner: &mut ExprLoop) {
        self.deeper(|rewrite| visit_mut::visit_expr_loop_mut(rewrite, inner));
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        self.deeper(|rewrite| visit_mut::visit_expr_closure_mut(rewrite, closure));
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        // The runtime combines, so that it is done everywhere in the same way. The value comes first: it may add too.
        for (number, accumulator) in self.accumulators.iter().enumerate() {
            let (root, name, index) = (self.root, &accumulator.name, Index::from(number));
            *expr = match accumulator.added(expr) {
                Some(Added::Value(value)) => parse_quote!(
                    match #value {
                        __value => {
                            #name = #root::accumulate::Accumulator::combine(&__accumulators.#index, #name, __value);
                        }
                    }
                ),
                Some(Added::At { place, value }) => parse_quote!(
                    match (#value, #place) {
                        (__value, __place) => #name.add(__place, __value),
                    }
                ),
                Some(Added::Called { .. }) => return,
                None => continue,
            };
            return;
        }
        match expr {
            Expr::Continue(next) if next.label.is_none() && self.depth == 0 => {
                let word = syn::token::Break(next.continue_token.span);
                *expr = parse_quote!(#word '__iteration);
            }
            Expr::MethodCall(call) if is_pure(&call.method) && is_in_written(self.arrays, &call.receiver) => {
                let receiver = &call.receiver;
                let here = Span::mixed_site().located_at(receiver.span());
                let place = quote_spanned!(here=> (*&#receiver));
                call.receiver = parse_quote!(#place);
            }
            _ => {}
        }
    }
}

/// The body with what it adds to accumulators, how it ends an iteration, and what it calls methods on put in the
/// runtime's hands. Within the block it becomes, a plain `break` or `continue` that a macro hides does not compile.
pub(crate) fn rewrite(input: &Input, body: &Block) -> TokenStream {
    let Input { root, arrays, accumulators, .. } = input;
    let mut body = body.clone();
    Rewrite { root, arrays, accumulators, depth: 0 }.visit_block_mut(&mut body);
    quote::quote!('__iteration: #body)
}
