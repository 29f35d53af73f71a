//! The loop itself: entries of a sparse array, or nested ranges of indices.
use super::clauses::Input;
use super::scope::names_of;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Block, Error, Expr, ExprForLoop, ExprLit, Ident, Lit, Pat, RangeLimits, Result, Stmt, Type, UnOp};

/// The iteration space of the loop.
pub(crate) enum Space<'a> {
    /// The entries of an array; the pattern of their values.
    Entries { array: &'a Expr, value: &'a Pat },
    /// Ranges of indices, outermost first.
    Ranges(Vec<TokenStream>),
}

/// The dimensions of the loop.
pub(crate) struct Nest<'a> {
    pub(crate) space: Space<'a>,
    /// The loop's variables, outermost first.
    pub(crate) variables: Vec<Ident>,
    /// The body of each iteration.
    pub(crate) body: &'a Block,
}

/// A name for a variable that the pattern leaves out.
fn variable(pattern: &Pat, number: usize) -> Result<Ident> {
    match pattern {
        Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => match &name.mutability {
            None => Ok(name.ident.clone()),
            Some(word) => Err(Error::new(
                word.span(),
                "a loop variable must not change: subscripts are derived from it",
            )),
        },
        Pat::Wild(wild) => Ok(Ident::new(&format!("_{number}"), wild.span())),
        Pat::Paren(inner) => variable(&inner.pat, number),
        other => Err(Error::new_spanned(other, "a loop variable is a name or `_`")),
    }
}

/// The bounds of a range, as `(start, end)`.
pub(crate) fn range(expr: &Expr) -> Option<(TokenStream, TokenStream, &Expr, &Expr)> {
    let Expr::Range(range) = strip(expr) else { return None };
    let (start, end) = (range.start.as_deref()?, range.end.as_deref()?);
    let last = match range.limits {
        RangeLimits::HalfOpen(_) => quote!(#end),
        RangeLimits::Closed(_) => quote_spanned!(end.span()=> (#end) + 1),
    };
    Some((quote!(#start), last, start, end))
}

fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(inner) => strip(&inner.expr),
        Expr::Group(inner) => strip(&inner.expr),
        _ => expr,
    }
}

impl<'a> Nest<'a> {
    pub(crate) fn of(input: &'a Input) -> Result<Nest<'a>> {
        let head = &input.body;
        no_label(head)?;
        if let Some(attribute) = head.attrs.first() {
            return Err(Error::new_spanned(
                attribute,
                "put attributes before the statement that calls `parallel_for!`",
            ));
        }
        if range(&head.expr).is_some() {
            return Nest::ranges(input);
        }
        match strip(&head.expr) {
            Expr::Path(_) | Expr::Field(_) => Nest::entries(head),
            Expr::Range(open) => {
                Err(Error::new_spanned(open, "the range of a loop needs a start and an end"))
            }
            other => Err(Error::new_spanned(
                other,
                "a loop runs over a sparse array, by its name, or over a range `a..b`; adapters such as `rev`, \
                 `step_by` or `zip` hide which iterations there are: compute the index in the body instead",
            )),
        }
    }

    fn entries(head: &'a ExprForLoop) -> Result<Nest<'a>> {
        let advice = "an entry is taken apart as `((i, j), x)`: an index for each dimension, and the value";
        let Pat::Tuple(pair) = &*head.pat else { return Err(Error::new_spanned(&head.pat, advice)) };
        let [key, value] = [0, 1].map(|at| pair.elems.get(at));
        let (Some(key), Some(value), 2) = (key, value, pair.elems.len()) else {
            return Err(Error::new_spanned(pair, advice));
        };
        let patterns: Vec<&Pat> = match key {
            Pat::Tuple(keys) => keys.elems.iter().collect(),
            Pat::Slice(keys) => keys.elems.iter().collect(),
            single => vec![single],
        };
        let variables = patterns.iter().enumerate().map(|(at, pattern)| variable(pattern, at));
        let variables: Vec<Ident> = variables.collect::<Result<_>>()?;
        distinct(&variables)?;
        let space = Space::Entries { array: strip(&head.expr), value };
        Ok(Nest { space, variables, body: &head.body })
    }

    fn ranges(input: &'a Input) -> Result<Nest<'a>> {
        let head = &input.body;
        let sums = input.accumulators.iter().map(|accumulator| accumulator.name.clone());
        let own: Vec<Ident> = input.arrays.iter().map(|array| array.name.clone()).chain(sums).collect();
        let (mut variables, mut ranges) = (Vec::new(), Vec::new());
        let mut at = head;
        loop {
            let Some((start, end, ..)) = range(&at.expr) else { break };
            variables.push(variable(&at.pat, variables.len())?);
            ranges.push(quote_spanned!(at.expr.span()=> (#start)..(#end)));
            // A loop that is all of this loop's body, over a range that does not depend on it, is one more dimension.
            match &at.body.stmts[..] {
                [Stmt::Expr(Expr::ForLoop(inner), _)]
                    if inner.label.is_none()
                        && inner.attrs.is_empty()
                        && is_of_indices(&inner.expr)
                        && range(&inner.expr).is_some()
                        && variable(&inner.pat, 0).is_ok()
                        && !mentions(&inner.expr, &variables)
                        && !mentions(&inner.expr, &own) =>
                {
                    at = inner;
                }
                _ => break,
            }
        }
        distinct(&variables)?;
        Ok(Nest { space: Space::Ranges(ranges), variables, body: &at.body })
    }

    /// How many variables are indices of the loop's dimensions.
    pub(crate) fn dims(&self) -> usize {
        self.variables.len()
    }

    /// `body` behind a note of which iteration it is, for errors.
    pub(crate) fn marked(&self, root: &TokenStream, body: &TokenStream) -> TokenStream {
        let variables = &self.variables;
        quote! {
            #root::execute::begin_iteration([#(#variables),*]);
            #body
        }
    }

    /// The body of the closure that runs the iterations of one cell, `__chunk`. `innermost` may write the innermost loop over a range,
    /// whose name it gets, in its own way.
    pub(crate) fn iterate(
        &self,
        root: &TokenStream,
        body: &TokenStream,
        innermost: impl FnOnce(&Ident) -> Option<TokenStream>,
    ) -> TokenStream {
        let variables = &self.variables;
        match &self.space {
            Space::Entries { value, .. } => quote! {
                for __entry in __chunk {
                    let ([#(#variables),*], #value) = #root::execute::entry_parts(__entry);
                    #body
                }
            },
            Space::Ranges(ranges) => {
                let chunks: Vec<Ident> = (0..ranges.len())
                    .map(|at| format_ident!("__range{}", at, span = Span::mixed_site()))
                    .collect();
                let mut nested = variables.iter().zip(&chunks).rev();
                let mut code = quote!();
                if let Some((variable, chunk)) = nested.next() {
                    code =
                        innermost(chunk).unwrap_or_else(|| quote!(for #variable in #chunk.clone() { #body }));
                }
                for (variable, chunk) in nested {
                    code = quote!(for #variable in #chunk.clone() { #code });
                }
                quote! {
                    let [#(#chunks),*] = __chunk;
                    #code
                }
            }
        }
    }
}

/// Whether the bounds of a range may be of type `usize`, as those of a dimension are.
fn is_of_indices(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Range(range) => [&range.start, &range.end].into_iter().flatten().all(|end| is_of_indices(end)),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => ["", "usize"].contains(&number.suffix()),
        Expr::Cast(cast) => matches!(&*cast.ty, Type::Path(path) if path.path.is_ident("usize")),
        Expr::Binary(binary) => is_of_indices(&binary.left) && is_of_indices(&binary.right),
        Expr::Unary(unary) => !matches!(unary.op, UnOp::Neg(_)),
        _ => true,
    }
}

fn no_label(head: &ExprForLoop) -> Result<()> {
    match &head.label {
        Some(label) => Err(Error::new_spanned(
            label,
            "a loop that runs on many workers cannot be left or continued from inside another: it has no label",
        )),
        None => Ok(()),
    }
}

fn distinct(variables: &[Ident]) -> Result<()> {
    for (at, variable) in variables.iter().enumerate() {
        if variables[..at].contains(variable) {
            return Err(Error::new(
                variable.span(),
                format!("two variables of the loop are named `{variable}`"),
            ));
        }
    }
    Ok(())
}

/// Whether an expression mentions one of these names.
pub(crate) fn mentions(tokens: &impl ToTokens, names: &[Ident]) -> bool {
    fn search(tokens: TokenStream, names: &[Ident]) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(name) => names.contains(&name),
            proc_macro2::TokenTree::Group(group) => search(group.stream(), names),
            _ => false,
        })
    }
    search(tokens.to_token_stream(), names)
}

/// The patterns of a loop inside the body that runs over a range: its variable, if it is one that can be followed.
pub(crate) fn inner_variable(pattern: &Pat) -> Option<Ident> {
    match (variable(pattern, 0), &names_of(pattern)[..]) {
        (Ok(name), [_]) => Some(name),
        _ => None,
    }
}

/// The range that an inner loop runs over, perhaps backwards or in steps.
pub(crate) fn inner_range(expr: &Expr) -> Option<(&Expr, &Expr, bool)> {
    match strip(expr) {
        Expr::MethodCall(call) if ["rev", "step_by"].iter().any(|name| call.method == name) => {
            inner_range(&call.receiver)
        }
        Expr::Range(range) => {
            let closed = matches!(range.limits, RangeLimits::Closed(_));
            Some((range.start.as_deref()?, range.end.as_deref()?, closed))
        }
        _ => None,
    }
}
