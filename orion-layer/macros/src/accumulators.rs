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
            Kind::Array { .. } => {
                return format!(
                    "the body adds to `{name}` by `{name}[place] += value;`, `{name}.add(place, value)`, \
                     `{name}.add_row(first, &values)` and `{name}.view(first, len)`, and by nothing else: what it holds in between depends on who runs \
                     which iteration"
                );
            }
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

    /// The value and the element it is added to, if `expr` adds to this accumulator.
    pub(crate) fn added<'e>(&self, expr: &'e Expr) -> Option<Added<'e>> {
        if let Kind::Array { .. } = self.kind {
            return self.added_to_array(expr);
        }
        self.added_value(expr).map(Added::Value)
    }

    fn added_to_array<'e>(&self, expr: &'e Expr) -> Option<Added<'e>> {
        match expr {
            Expr::Binary(binary) if matches!(binary.op, BinOp::AddAssign(_)) => match &*binary.left {
                Expr::Index(index) if is(&index.expr, &self.name) => {
                    Some(Added::At { place: &index.index, value: &binary.right })
                }
                _ => None,
            },
            Expr::MethodCall(call) if is(&call.receiver, &self.name) => {
                let fits =
                    ["add", "add_row", "view"].iter().any(|name| call.method == name) && call.args.len() == 2;
                fits.then(|| Added::Called { place: &call.args[0], value: &call.args[1] })
            }
            _ => None,
        }
    }

    fn added_value<'e>(&self, expr: &'e Expr) -> Option<&'e Expr> {
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

/// How an expression adds to an accumulator.
pub(crate) enum Added<'e> {
    /// A value, to a single one.
    Value(&'e Expr),
    /// A value at a place of an array: `sums[place] += value`.
    At { place: &'e Expr, value: &'e Expr },
    /// The same by a method, which is run as it stands.
    Called { place: &'e Expr, value: &'e Expr },
}

impl<'e> Added<'e> {
    /// The expressions in it.
    pub(crate) fn parts(self) -> Vec<&'e Expr> {
        match self {
            Added::Value(value) => vec![value],
            Added::At { place, value } | Added::Called { place, value } => vec![place, value],
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
            Kind::Array { len } => quote!(#root::accumulate::ArraySum::<#of>::new(#len)),
            Kind::Min => quote!(#root::accumulate::Min::<#of>::new()),
            Kind::Max => quote!(#root::accumulate::Max::<#of>::new()),
            Kind::Fold { identity, combine } => quote!(#root::describe::fold::<#of, _>(#identity, #combine)),
        }
    });
    quote!((#(#each,)*))
}
