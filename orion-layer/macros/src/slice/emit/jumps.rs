//! Jumps in expressions, and where they lead in a slice.
use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Lifetime, parse_quote};

/// The label of what is done under the `depth`th condition that is not known.
pub(super) fn unknown(depth: usize) -> Lifetime {
    Lifetime::new(&format!("'__unknown_{depth}"), Span::call_site())
}

/// Whether there is a jump in an expression.
pub(super) fn jumps(expr: &Expr) -> bool {
    struct Jumps(bool);
    impl<'a> Visit<'a> for Jumps {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.0 |= matches!(expr, Expr::Break(_) | Expr::Continue(_));
            visit::visit_expr(self, expr);
        }
    }
    let mut jumps = Jumps(false);
    jumps.visit_expr(expr);
    jumps.0
}

/// Makes jumps out of a statement leave a labelled block.
pub(super) struct Redirect {
    pub(super) to: Lifetime,
    /// Loops around the place, in the statement.
    pub(super) loops: usize,
}

impl VisitMut for Redirect {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let is_loop = matches!(expr, Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_));
        let is_jump = matches!(expr, Expr::Break(_) | Expr::Continue(_));
        if is_jump && self.loops == 0 {
            let to = &self.to;
            *expr = parse_quote!(break #to);
            return;
        }
        self.loops += usize::from(is_loop);
        visit_mut::visit_expr_mut(self, expr);
        self.loops -= usize::from(is_loop);
    }
}
