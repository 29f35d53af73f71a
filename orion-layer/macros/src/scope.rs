//! The meaning of names at a place in the body.
use super::form::Form;
use super::hygiene::Ambiguous;
use super::text::text;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::HashMap;
use syn::visit::Visit;
use syn::{Arm, Expr, ExprPath, Ident, Macro, Pat, PatIdent, UseTree};

/// The meaning of a name that is bound in the loop.
#[derive(Clone)]
pub(crate) enum Binding {
    /// A value that follows from the loop's variables.
    Form(Form),
    /// Anything.
    Other,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Binding>,
    /// Whether it may hold names that cannot be seen: of a glob import, or made by a macro.
    opaque: bool,
}

static OTHER: Binding = Binding::Other;

/// The scopes around a place in the body, and the values from outside that subscripts use.
pub(crate) struct Scopes<'a> {
    ambiguous: &'a Ambiguous,
    stack: Vec<Scope>,
    /// Expressions of values from outside the loop that were met, each once.
    pub(crate) outside: Vec<Expr>,
}

impl<'a> Scopes<'a> {
    pub(crate) fn new(ambiguous: &'a Ambiguous) -> Scopes<'a> {
        Scopes { ambiguous, stack: Vec::new(), outside: Vec::new() }
    }

    pub(crate) fn push(&mut self) {
        self.stack.push(Scope::default());
    }

    pub(crate) fn pop(&mut self) {
        self.stack.pop();
    }

    pub(crate) fn bind(&mut self, name: &Ident, binding: Binding) {
        if let Some(scope) = self.stack.last_mut() {
            scope.names.insert(name.to_string(), binding);
        }
    }

    pub(crate) fn find(&self, name: &Ident) -> Option<&Binding> {
        let name = name.to_string();
        if self.ambiguous.contains(&name) {
            return Some(&OTHER);
        }
        self.stack.iter().rev().find_map(|scope| match scope.names.get(&name) {
            None if scope.opaque => Some(&OTHER),
            found => found,
        })
    }

    /// Whether a path, or a type in it, may be of something that the body itself defines.
    pub(crate) fn is_inside(&self, path: &ExprPath) -> bool {
        let mut names = Vec::new();
        names_in(path.to_token_stream(), &mut names);
        names.iter().any(|name| self.find(name).is_some())
    }

    /// From here on, what the innermost scope does not name may still be its own.
    pub(crate) fn make_opaque(&mut self) {
        if let Some(scope) = self.stack.last_mut() {
            scope.opaque = true;
        }
    }

    /// Binds all names of a pattern to anything.
    pub(crate) fn bind_pattern(&mut self, pattern: &Pat) {
        for name in names_of(pattern) {
            self.bind(&name, Binding::Other);
        }
    }

    /// Whether a path, or a field of one, is of a variable from outside the loop.
    pub(crate) fn is_outside(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(path) => !self.is_inside(path),
            Expr::Field(field) => self.is_outside(&field.base),
            Expr::Paren(inner) => self.is_outside(&inner.expr),
            Expr::Group(inner) => self.is_outside(&inner.expr),
            _ => false,
        }
    }

    /// The number of a value from outside.
    pub(crate) fn outside(&mut self, expr: &Expr) -> usize {
        let wanted = text(expr);
        let known = self.outside.iter().position(|known| text(known) == wanted);
        known.unwrap_or_else(|| {
            self.outside.push(expr.clone());
            self.outside.len() - 1
        })
    }
}

/// The names that a pattern binds.
pub(crate) fn names_of(pattern: &Pat) -> Vec<Ident> {
    struct Names(Vec<Ident>);
    impl<'a> Visit<'a> for Names {
        fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
            self.0.push(pattern.ident.clone());
            syn::visit::visit_pat_ident(self, pattern);
        }

        // A macro may make a pattern of any name that it is given.
        fn visit_macro(&mut self, call: &'a Macro) {
            names_in(call.tokens.clone(), &mut self.0);
        }
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    names.0
}

/// All names among some tokens.
pub(crate) fn names_in(tokens: TokenStream, names: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => names.push(name),
            TokenTree::Group(group) => names_in(group.stream(), names),
            _ => {}
        }
    }
}

/// The pattern of an arm, and the condition behind it.
pub(crate) fn guarded(arm: &Arm) -> (&Pat, Option<&Expr>) {
    match &arm.pat {
        Pat::Guard(guarded) => (&guarded.pat, Some(&guarded.guard)),
        pattern => (pattern, None),
    }
}

/// Whether a pattern borrows what it is matched with for writing.
pub(crate) fn writes(pattern: &Pat) -> bool {
    struct RefMut(bool);
    impl<'a> Visit<'a> for RefMut {
        fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
            self.0 |= pattern.by_ref.is_some() && pattern.mutability.is_some();
            syn::visit::visit_pat_ident(self, pattern);
        }

        fn visit_macro(&mut self, _: &'a Macro) {
            self.0 = true;
        }
    }
    let mut found = RefMut(false);
    found.visit_pat(pattern);
    found.0
}

/// Names that a `use` brings in; whether it brings in others.
pub(crate) fn names_of_use(tree: &UseTree, names: &mut Vec<Ident>) -> bool {
    match tree {
        UseTree::Path(path) => names_of_use(&path.tree, names),
        UseTree::Name(name) => {
            names.push(name.ident.clone());
            false
        }
        UseTree::Rename(rename) => {
            names.push(rename.rename.clone());
            false
        }
        UseTree::Glob(_) => true,
        UseTree::Group(group) => {
            group.items.iter().fold(false, |others, tree| names_of_use(tree, names) | others)
        }
    }
}
