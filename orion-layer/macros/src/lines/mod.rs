//! The innermost loop in a second form, whose accesses are lines: the bounds of each are checked once before the loop instead of at
//! every element, so that compilers see plain memory and can use vectors. Where a line does not lie whole in one part, the first
//! form runs.
mod calm;
mod sites;

use self::calm::is_calm;
pub(crate) use self::sites::Site;
use self::sites::{Replace, numbers_of, sees_all};
use super::clauses::{Input, Treatment};
use super::form::Used;
use super::nest::{Nest, Space};
use super::rewrite::rewrite;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Block, Ident};

/// A name that the body cannot mean.
fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The range of the innermost variable.
fn range() -> Ident {
    hidden("__line")
}

/// The variable that counts along it, from 0.
fn counter() -> Ident {
    hidden("__at")
}

/// The lines of the innermost loop.
pub(crate) struct Lines<'a> {
    /// The body, whose accesses are looks into lines.
    body: Block,
    /// Whether it calls nothing that compilers do not see through.
    is_calm: bool,
    arrays: Vec<ArrayLines<'a>>,
    /// Conditions on values from outside.
    conditions: Vec<TokenStream>,
}

/// The lines through one array.
struct ArrayLines<'a> {
    name: &'a Ident,
    lines: Vec<TokenStream>,
}

impl<'a> Lines<'a> {
    /// The lines of a loop, if any array is accessed by lines only. `sites` are the accesses to elements, `others` says of each array
    /// whether it is accessed in another way, too.
    pub(crate) fn of(
        input: &'a Input,
        nest: &Nest<'_>,
        sites: &[Site],
        others: &[bool],
        used: &mut Used,
    ) -> Option<Lines<'a>> {
        let Space::Ranges(_) = &nest.space else { return None };
        if !sees_all(nest.body) {
            return None;
        }
        let numbers = numbers_of(nest.body);
        let (mut arrays, mut conditions) = (Vec::new(), Vec::new());
        let mut replace = Replace::new(&input.root, counter());
        for (number, array) in input.arrays.iter().enumerate() {
            if others[number] || array.treatment != Treatment::Kept {
                continue;
            }
            let own: Vec<&Site> = sites.iter().filter(|site| site.array == number).collect();
            let codes: Option<Vec<_>> = own.iter().map(|site| line(&input.root, nest, site, used)).collect();
            let places: Option<Vec<_>> = own.iter().map(|site| numbers.get(&site.node).copied()).collect();
            let (Some(codes), Some(places), false) = (codes, places, own.is_empty()) else { continue };
            let (lines, holds): (Vec<_>, Vec<_>) = codes.into_iter().unzip();
            conditions.extend(holds.into_iter().flatten());
            replace.add(places);
            arrays.push(ArrayLines { name: &array.name, lines });
        }
        if arrays.is_empty() {
            return None;
        }
        let body = replace.in_body(nest.body);
        let is_calm = is_calm(nest.body, &input.arrays);
        Some(Lines { body, is_calm, arrays, conditions })
    }

    /// The innermost loop over `chunk`, whose other form has the body `slow`.
    pub(crate) fn innermost(
        &self,
        input: &Input,
        nest: &Nest<'_>,
        chunk: &Ident,
        slow: &TokenStream,
    ) -> TokenStream {
        let root = &input.root;
        let (line, count, at, mark) = (range(), hidden("__count"), counter(), hidden("__mark"));
        let is_lined = hidden("__is_lined");
        let (variable, outer) = nest.variables.split_last().expect("a loop has a variable");
        let names: Vec<&Ident> = self.arrays.iter().map(|array| array.name).collect();
        let found: Vec<Ident> = (0..names.len()).map(|at| hidden(&format!("__lines{at}"))).collect();
        let lines = self.arrays.iter().map(|array| {
            let (name, lines) = (array.name, &array.lines);
            quote!(if #is_lined { #name.__lines([#(#lines),*], #count) } else { ::core::option::Option::None })
        });
        let conditions = &self.conditions;
        let body = rewrite(input, &self.body);
        let fast = match self.is_calm {
            true => quote! {
                let mut #mark = #root::execute::IterationMark::new([#(#outer,)* #line.start]);
                for #at in 0..#count {
                    #mark.begin(#at);
                    let #variable = #line.start + #at;
                    #body
                }
                #mark.end();
            },
            false => {
                let marked = nest.marked(root, &body);
                quote! {
                    for #at in 0..#count {
                        let #variable = #line.start + #at;
                        #marked
                    }
                }
            }
        };
        quote! {
            let #line = #chunk.clone();
            let #count = #line.len();
            let #is_lined = #count >= #root::view::LEAST_LINE #(&& #conditions)*;
            match (#(#lines,)*) {
                (#(::core::option::Option::Some(mut #found),)*) => {
                    #(let #names = &mut #found;)*
                    #fast
                }
                _ => for #variable in #line { #slow },
            }
        }
    }
}

/// Code for the line of an access, and what has to hold for it; `None` if its elements do not lie at equal distances.
fn line(
    root: &TokenStream,
    nest: &Nest<'_>,
    site: &Site,
    used: &mut Used,
) -> Option<(TokenStream, Vec<TokenStream>)> {
    let writes = site.writes;
    let (_, outer) = nest.variables.split_last()?;
    let range = range();
    let values: Vec<TokenStream> = outer
        .iter()
        .map(|variable| quote!((#variable as i64)))
        .chain(std::iter::once(quote!((#range.start as i64))))
        .collect();
    let (mut first, mut steps, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
    for form in &site.forms {
        steps.push(form.step(nest.dims())?);
        first.push(form.value(&values, used));
        conditions.extend(form.conditions(used));
    }
    let line = quote! {
        #root::view::Line { first: [#((#first) as usize),*], step: [#(#steps),*], writes: #writes }
    };
    Some((line, conditions))
}
