//! The value of an expression as an integer that is affine in the variables of the loop.
use super::form::{Form, Sym};
use super::scope::{Binding, Scopes};
use syn::{BinOp, Expr, Lit, Type, UnOp};

/// The integer types of 64 bits.
const WIDE: [&str; 4] = ["usize", "isize", "u64", "i64"];

/// The value of an expression as a form; `None` if it is none that can be followed.
pub(crate) fn form(expr: &Expr, scopes: &mut Scopes<'_>) -> Option<Form> {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(number) => {
                let is_wide = WIDE.contains(&number.suffix());
                Some(Form::number(number.base10_parse().ok()?, is_wide))
            }
            _ => None,
        },
        Expr::Paren(inner) => form(&inner.expr, scopes),
        Expr::Group(inner) => form(&inner.expr, scopes),
        // Casts to 64 bits keep every index; narrower ones may not.
        Expr::Cast(cast) => match &*cast.ty {
            Type::Path(path) if WIDE.iter().any(|name| path.path.is_ident(name)) => {
                form(&cast.expr, scopes)?.widened()
            }
            _ => None,
        },
        Expr::Unary(unary) => match unary.op {
            UnOp::Neg(_) => form(&unary.expr, scopes)?.negated(),
            _ => None,
        },
        Expr::Binary(binary) => {
            let (left, right) = (form(&binary.left, scopes), form(&binary.right, scopes));
            let (left, right) = (left?, right?);
            match binary.op {
                BinOp::Add(_) => Some(left.plus(right)),
                BinOp::Sub(_) => Some(left.plus(right.scaled(&Sym::number(-1))?)),
                BinOp::Mul(_) => match (left.as_sym(), right.as_sym()) {
                    (_, Some(factor)) => left.times(factor, &right),
                    (Some(factor), None) => right.times(factor, &left),
                    (None, None) => None,
                },
                _ => None,
            }
        }
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => match scopes.find(name) {
                Some(Binding::Form(form)) => Some(form.clone()),
                Some(Binding::Other) => None,
                None => Some(Form::invariant(scopes.outside(expr))),
            },
            None if scopes.is_inside(path) => None,
            // A constant of some module or type.
            None => Some(Form::invariant(scopes.outside(expr))),
        },
        Expr::Field(_) => scopes.is_outside(expr).then(|| Form::invariant(scopes.outside(expr))),
        _ => None,
    }
}
