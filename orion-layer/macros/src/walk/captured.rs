//! Values from outside that the body uses: numbers among them have to be the same on all workers.
use super::super::text::text;
use super::Walker;
use syn::visit::Visit;
use syn::{Expr, ExprMethodCall, Ident};

/// Methods whose argument is a function, if it is a name. A generic one has no type without its use.
const TAKE_FUNCTIONS: [&str; 24] = [
    "all",
    "and_then",
    "any",
    "filter",
    "filter_map",
    "find",
    "find_map",
    "flat_map",
    "fold",
    "for_each",
    "inspect",
    "is_none_or",
    "is_some_and",
    "map",
    "map_or",
    "map_or_else",
    "or_else",
    "partition",
    "position",
    "reduce",
    "skip_while",
    "take_while",
    "then",
    "unwrap_or_else",
];

/// The variable that a place is, or a field of.
pub(super) fn root(expr: &Expr) -> Option<&syn::ExprPath> {
    match expr {
        Expr::Path(path) => Some(path),
        Expr::Field(field) => root(&field.base),
        _ => None,
    }
}

impl Walker<'_> {
    /// Notes a variable from outside, or a field of one.
    pub(super) fn capture(&mut self, expr: &Expr) {
        let Some(name) = root(expr).and_then(|path| path.path.get_ident()) else { return };
        if !self.is_from_outside(name, expr) || self.unseen > 0 {
            return;
        }
        if !self.captured.iter().any(|known| text(known) == text(expr)) {
            self.captured.push(expr.clone());
        }
    }

    /// Whether `expr`, whose variable is `name`, is a variable from outside that is none of the loop's.
    fn is_from_outside(&self, name: &Ident, expr: &Expr) -> bool {
        // Others are constants, and functions that are made of types.
        let is_variable = name.to_string().starts_with(|first: char| first.is_lowercase() || first == '_');
        is_variable && !self.names().contains(name) && self.scopes.is_outside(expr)
    }

    /// Refuses a change of a variable from outside.
    pub(super) fn check_local(&mut self, name: &Ident, expr: &Expr) {
        if self.is_from_outside(name, expr) {
            self.error(
                name,
                format!(
                    "`{name}` is captured from outside the loop, and every worker has its own copy: to write elements, use an \
                     array under `write`; to accumulate, use `sum {name}: f64`"
                ),
            );
        }
    }

    /// Goes through code whose variables may not be there for the head of the loop.
    pub(super) fn unseen(&mut self, act: impl FnOnce(&mut Self)) {
        self.unseen += 1;
        act(self);
        self.unseen -= 1;
    }

    /// The arguments of a method that is none of an array.
    pub(super) fn visit_arguments(&mut self, call: &ExprMethodCall) {
        let takes_functions = TAKE_FUNCTIONS.iter().any(|name| call.method == name);
        for argument in &call.args {
            match argument {
                Expr::Path(_) if takes_functions => self.unseen(|walker| walker.visit_expr(argument)),
                _ => self.visit_expr(argument),
            }
        }
    }
}
