//! Methods of iterators that call a closure for each element: to the slice, a `for` loop.
use syn::{Expr, ExprClosure, Ident, Pat, Stmt, parse_quote};

/// The arguments that a method gives to its closure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// An element, as the parameter of this number.
    Element(usize),
    /// A reference to one.
    Reference,
}

/// How a method's closure gets the elements, if that is known.
pub(super) fn parameter(method: &Ident, closure: &ExprClosure) -> Option<Given> {
    let given = match method.to_string().as_str() {
        "map" | "for_each" | "filter_map" | "flat_map" | "any" | "all" | "position" | "find_map"
        | "map_while" => Given::Element(0),
        "fold" => Given::Element(1),
        "filter" | "take_while" | "skip_while" | "find" | "inspect" | "partition" | "max_by_key"
        | "min_by_key" => Given::Reference,
        _ => return None,
    };
    let wanted = if given == Given::Element(1) { 2 } else { 1 };
    (closure.inputs.len() == wanted).then_some(given)
}

/// Whether a method goes through all elements, whatever its closure says.
pub(super) fn exhausts(method: &Ident) -> bool {
    let all = [
        "map",
        "for_each",
        "filter_map",
        "flat_map",
        "fold",
        "filter",
        "inspect",
        "partition",
        "max_by_key",
        "min_by_key",
    ];
    all.iter().any(|known| method == known)
}

/// Whether it can be seen that an iterator has no end of its own.
pub(super) fn is_endless(expr: &Expr) -> bool {
    match expr {
        Expr::Range(range) => range.end.is_none(),
        Expr::Paren(inner) => is_endless(&inner.expr),
        Expr::Group(inner) => is_endless(&inner.expr),
        Expr::MethodCall(call) => {
            let same = [
                "map",
                "filter",
                "filter_map",
                "flat_map",
                "step_by",
                "skip",
                "enumerate",
                "inspect",
                "copied",
                "cloned",
                "into_iter",
                "skip_while",
            ];
            call.method == "cycle"
                || same.iter().any(|known| call.method == known) && is_endless(&call.receiver)
        }
        _ => false,
    }
}

/// The pattern of a `for` loop in place of a closure, and what its body begins with.
pub(super) fn pattern(closure: &ExprClosure, given: Given) -> (Pat, Vec<Stmt>) {
    match given {
        Given::Element(number) => (untyped(&closure.inputs[number]), Vec::new()),
        Given::Reference => {
            let pattern = untyped(&closure.inputs[0]);
            (parse_quote!(__element), vec![parse_quote!(let #pattern = &__element;)])
        }
    }
}

fn untyped(pattern: &Pat) -> Pat {
    match pattern {
        Pat::Type(typed) => (*typed.pat).clone(),
        other => other.clone(),
    }
}
