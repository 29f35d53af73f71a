//! Bodies that only calculate.
use crate::clauses::Array;
use crate::rewrite::is_pure;
use syn::visit::{self, Visit};
use syn::{Block, Expr};

/// Whether a body calls nothing but methods of numbers, and looks into nothing but arrays of the loop. Only the speed depends on it.
pub(super) fn is_calm(body: &Block, arrays: &[Array]) -> bool {
    struct Calm<'a> {
        arrays: &'a [Array],
        holds: bool,
    }
    impl<'a> Visit<'a> for Calm<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.holds &= match expr {
                Expr::MethodCall(call) => is_pure(&call.method),
                Expr::Index(index) => match &*index.expr {
                    Expr::Path(path) => self.arrays.iter().any(|array| path.path.is_ident(&array.name)),
                    _ => false,
                },
                Expr::Array(_)
                | Expr::Assign(_)
                | Expr::Binary(_)
                | Expr::Block(_)
                | Expr::Cast(_)
                | Expr::Continue(_)
                | Expr::Field(_)
                | Expr::Group(_)
                | Expr::If(_)
                | Expr::Lit(_)
                | Expr::Paren(_)
                | Expr::Path(_)
                | Expr::Unary(_) => true,
                _ => false,
            };
            visit::visit_expr(self, expr);
        }
    }
    let mut calm = Calm { arrays, holds: true };
    calm.visit_block(body);
    calm.holds
}
