//! The children of an expression.
use super::super::super::walk::is_assignment;
use syn::Expr;

/// The expressions in an expression without control flow of its own, in the order in which they are evaluated.
pub(super) fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Array(list) => list.elems.iter().collect(),
        Expr::Tuple(list) => list.elems.iter().collect(),
        Expr::Assign(assign) => vec![&assign.right, &assign.left],
        Expr::Binary(binary) if is_assignment(&binary.op) => vec![&binary.right, &binary.left],
        Expr::Binary(binary) => vec![&binary.left, &binary.right],
        Expr::Call(call) => std::iter::once(&*call.func).chain(&call.args).collect(),
        Expr::Cast(cast) => vec![&cast.expr],
        Expr::Field(field) => vec![&field.base],
        Expr::Group(inner) => vec![&inner.expr],
        Expr::Paren(inner) => vec![&inner.expr],
        Expr::Index(index) => vec![&index.expr, &index.index],
        Expr::Let(condition) => vec![&condition.expr],
        Expr::Range(range) => [&range.start, &range.end].into_iter().flatten().map(|end| &**end).collect(),
        Expr::RawAddr(address) => vec![&address.expr],
        Expr::Reference(reference) => vec![&reference.expr],
        Expr::Repeat(repeat) => vec![&repeat.expr, &repeat.len],
        Expr::Return(leave) => leave.expr.iter().map(|value| &**value).collect(),
        Expr::Struct(fields) => {
            let rest = fields.rest.iter().map(|rest| &**rest);
            fields.fields.iter().map(|field| &field.expr).chain(rest).collect()
        }
        Expr::Unary(unary) => vec![&unary.expr],
        _ => Vec::new(),
    }
}
