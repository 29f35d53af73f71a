//! Why what a loop touches is not found out before it runs.
use super::super::text::text;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Block, Error, Expr, ExprCall, ExprMethodCall, Macro, PatIdent};

/// The beginning of an error of the slice, without the advice for served arrays, and where it is.
pub(super) fn reason(error: &Error) -> String {
    let message = error.to_string();
    let what = message.split(": ").next().unwrap_or(&message).replace("a served array", "an array");
    let what = what.replace("served arrays are used", "arrays are used");
    format!("line {}: {what}", error.span().start().line)
}

/// Methods that change what they are called on, though it is not borrowed to be changed, or have another value each time.
const CHANGING: [&str; 20] = [
    "set",
    "replace",
    "swap",
    "take",
    "update",
    "store",
    "load",
    "lock",
    "try_lock",
    "write",
    "borrow_mut",
    "recv",
    "try_recv",
    "send",
    "next",
    "elapsed",
    "call",
    "with",
    "get_or_init",
    "get_or_insert_with",
];

/// Why the statements of a slice must not be run a second time, beside the body that they are of; `None` if they may be.
pub(super) fn once(body: &Block, slice: &Block) -> Option<String> {
    let mut once = Once(None);
    once.visit_block(slice);
    let mut binds = ByReference(false);
    binds.visit_block(body);
    once.0
        .or_else(|| binds.0.then(|| "it binds by `ref mut`: what is changed that way is not seen".to_owned()))
}

struct Once(Option<String>);

impl Once {
    fn note(&mut self, line: usize, what: &impl ToTokens) {
        self.0.get_or_insert_with(|| {
            format!(
                "line {line}: subscripts depend on `{}`, which may do something, or have another value, when it is called \
                 once more: compute them into an array before the loop",
                text(what)
            )
        });
    }
}

impl<'a> Visit<'a> for Once {
    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        let is_variant = match &*call.func {
            Expr::Path(path) => path
                .path
                .segments
                .last()
                .is_some_and(|name| name.ident.to_string().starts_with(char::is_uppercase)),
            _ => false,
        };
        let names = |path: &syn::ExprPath| {
            path.path.segments.iter().map(|name| name.ident.to_string()).collect::<Vec<_>>()
        };
        let is_own = matches!(&*call.func, Expr::Path(path) if names(path).ends_with(&["describe".into(), "turn".into()]));
        if !is_variant && !is_own {
            self.note(syn::spanned::Spanned::span(call).start().line, call);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        let name = call.method.to_string();
        if name.starts_with("fetch_") || name.starts_with("compare_") || CHANGING.contains(&name.as_str()) {
            self.note(call.method.span().start().line, call);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.note(syn::spanned::Spanned::span(call).start().line, call);
    }
}

struct ByReference(bool);

impl<'a> Visit<'a> for ByReference {
    fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
        self.0 |= pattern.by_ref.is_some() && pattern.mutability.is_some();
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.0 |= has_ref_mut(call.tokens.clone());
    }
}

fn has_ref_mut(tokens: TokenStream) -> bool {
    let mut was_ref = false;
    for token in tokens {
        match token {
            TokenTree::Ident(name) if was_ref && name == "mut" => return true,
            TokenTree::Ident(name) => was_ref = name == "ref",
            TokenTree::Group(group) if has_ref_mut(group.stream()) => return true,
            _ => was_ref = false,
        }
    }
    false
}
