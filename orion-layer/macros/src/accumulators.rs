//! The operations of a body on an accumulator, and their expansion.
use super::clauses::{Accumulator, Kind};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{BinOp, Expr, Ident};

impl Accumulator {
    /// How the body adds to it.
    pub(crate) fn advice(&self) -> String {
        let name = &self.name;
        let form = match self.kind {
            Kind::Sum => format!("{name} += value"),
            Kind::Min => format!("{name} = {name}.min(value)"),
            Kind::Max => format!("{name} = {name}.max(value)"),
            Kind::Fold { .. } => format!("{name} = fold({name}, value)"),
        };
        let subtract = match self.kind {
            Kind::Sum => format!("; to subtract, write `{name} += -value;`"),
            _ => String::new(),
        };
        format!(
            "the body adds to `{name}` by `{form};` and by nothing else: what it holds in between depends on who runs \
             which iteration{subtract}"
        )
    }

    /// The value that is added, if `expr` adds to this accumulator.
    pub(crate) fn added<'e>(&self, expr: &'e Expr) -> Option<&'e Expr> {
        match (&self.kind, expr) {
            (Kind::Sum, Expr::Binary(binary)) if matches!(binary.op, BinOp::AddAssign(_)) => {
                is(&binary.left, &self.name).then_some(&*binary.right)
            }
            (Kind::Min | Kind::Max, Expr::Assign(assign)) if is(&assign.left, &self.name) => {
                let Expr::MethodCall(call) = &*assign.right else { return None };
                let wanted = if matches!(self.kind, Kind::Min) { "min" } else { "max" };
                let fits = call.method == wanted && is(&call.receiver, &self.name) && call.args.len() == 1;
                call.args.first().filter(|_| fits)
            }
            (Kind::Fold { .. }, Expr::Assign(assign)) if is(&assign.left, &self.name) => {
                let Expr::Call(call) = &*assign.right else { return None };
                let named = matches!(&*call.func, Expr::Path(path) if path.path.is_ident("fold"));
                let fits = named && call.args.len() == 2 && is(&call.args[0], &self.name);
                call.args.get(1).filter(|_| fits)
            }
            _ => None,
        }
    }
}

/// Whether an expression is this name.
pub(crate) fn is(expr: &Expr, name: &Ident) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident(name))
}

/// The tuple of the accumulators, for the runtime.
pub(crate) fn tuple(root: &TokenStream, accumulators: &[Accumulator]) -> TokenStream {
    let each = accumulators.iter().map(|accumulator| {
        let of = &accumulator.of;
        match &accumulator.kind {
            Kind::Sum => quote!(#root::accumulate::Sum::<#of>::new()),
            Kind::Min => quote!(#root::accumulate::Min::<#of>::new()),
            Kind::Max => quote!(#root::accumulate::Max::<#of>::new()),
            Kind::Fold { identity, combine } => quote!(#root::describe::fold::<#of, _>(#identity, #combine)),
        }
    });
    quote!((#(#each,)*))
}
