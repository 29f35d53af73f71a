//! The inputs of a slice, besides the loop's variables and arrays.
use super::super::clauses::Input;
use super::super::nest::{Nest, Space};
use super::super::scope::names_of;
use super::super::text::text;
use super::names::root;
use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprCall, ExprPath, Macro, Pat};

/// Code for an `Option<u64>`: a number that stays while the values from outside do, on which the slice depends. Functions
/// and closures that it calls, and constants, are taken to stay.
pub(crate) fn basis(input: &Input, nest: &Nest<'_>, slice: &Block) -> TokenStream {
    let root = &input.root;
    let mut bound: HashSet<String> = nest.variables.iter().map(ToString::to_string).collect();
    if let Space::Entries { value, .. } = &nest.space {
        bound.extend(names_of(value).iter().map(ToString::to_string));
    }
    bound.extend(input.arrays.iter().map(|array| array.name.to_string()));
    let mut binds = Bound(bound);
    binds.visit_block(slice);
    let mut outside = Outside { bound: &binds.0, found: Vec::new(), hidden: false };
    outside.visit_block(slice);
    if outside.hidden {
        return quote!(::core::option::Option::None);
    }
    let found = &outside.found;
    quote!(#root::describe::basis(&[#((&#root::describe::Captured(&(#found))).trace()),*]))
}

struct Bound(HashSet<String>);

impl<'a> Visit<'a> for Bound {
    fn visit_pat(&mut self, pattern: &'a Pat) {
        if let Pat::Guard(guarded) = pattern {
            return visit::visit_pat_guard(self, guarded);
        }
        self.0.extend(names_of(pattern).iter().map(ToString::to_string));
    }
}

struct Outside<'b> {
    bound: &'b HashSet<String>,
    found: Vec<Expr>,
    /// Whether there is something that cannot be seen.
    hidden: bool,
}

impl Outside<'_> {
    fn add(&mut self, expr: &Expr) {
        if !self.found.iter().any(|known| text(known) == text(expr)) {
            self.found.push(expr.clone());
        }
    }

    fn is_variable(&self, path: &ExprPath) -> bool {
        path.path.get_ident().is_some_and(|name| {
            let name = name.to_string();
            name.starts_with(|first: char| first.is_lowercase() || first == '_')
                && !self.bound.contains(&name)
        })
    }
}

impl<'a> Visit<'a> for Outside<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Path(path) => {
                if self.is_variable(path) {
                    self.add(expr);
                }
            }
            Expr::Field(field) => {
                let is_plain = |base: &Expr| matches!(base, Expr::Path(path) if self.is_variable(path));
                let mut base = &*field.base;
                while let Expr::Field(inner) = base {
                    base = &inner.base;
                }
                match is_plain(base) && root(base).is_some() {
                    true => self.add(expr),
                    false => visit::visit_expr(self, expr),
                }
            }
            other => visit::visit_expr(self, other),
        }
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        // A name that is called is no variable, or a closure.
        if !matches!(&*call.func, Expr::Path(_)) {
            self.visit_expr(&call.func);
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_macro(&mut self, _: &'a Macro) {
        self.hidden = true;
    }
}
