//! What names mean at a place in the body.
use super::form::Form;
use super::text::text;
use std::collections::HashMap;
use syn::visit::Visit;
use syn::{Expr, Ident, Pat, PatIdent};

/// What a name that is bound in the loop stands for.
#[derive(Clone)]
pub(crate) enum Binding {
    /// A value that follows from the loop's variables.
    Form(Form),
    /// Anything.
    Other,
}

/// The scopes around a place in the body, and the values from outside that subscripts use.
#[derive(Default)]
pub(crate) struct Scopes {
    stack: Vec<HashMap<String, Binding>>,
    /// Expressions of values from outside the loop that were met, each once.
    pub(crate) outside: Vec<Expr>,
}

impl Scopes {
    pub(crate) fn push(&mut self) {
        self.stack.push(HashMap::new());
    }

    pub(crate) fn pop(&mut self) {
        self.stack.pop();
    }

    pub(crate) fn bind(&mut self, name: &Ident, binding: Binding) {
        if let Some(scope) = self.stack.last_mut() {
            scope.insert(name.to_string(), binding);
        }
    }

    pub(crate) fn find(&self, name: &Ident) -> Option<&Binding> {
        let name = name.to_string();
        self.stack.iter().rev().find_map(|scope| scope.get(&name))
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
            Expr::Path(path) => path.path.get_ident().is_none_or(|name| self.find(name).is_none()),
            Expr::Field(field) => self.is_outside(&field.base),
            Expr::Paren(inner) => self.is_outside(&inner.expr),
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
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    names.0
}
