//! Names in tokens, and which of them stand for variables that the body may change.
use super::super::scope::names_of;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Local, Pat, PatIdent};

/// The names in some tokens, but for fields and methods.
pub(super) fn names(tokens: &impl ToTokens) -> Vec<String> {
    fn collect(tokens: TokenStream, names: &mut Vec<String>) {
        let mut dots = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '.' => {
                    dots += 1;
                    continue;
                }
                // Two dots are a range.
                TokenTree::Ident(name) if dots != 1 => names.push(name.to_string()),
                TokenTree::Group(group) => collect(group.stream(), names),
                TokenTree::Literal(literal) => shown(&literal.to_string(), names),
                _ => {}
            }
            dots = 0;
        }
    }
    let mut list = Vec::new();
    collect(tokens.to_token_stream(), &mut list);
    list
}

/// The names in the braces of a text, which may be the format of a macro.
fn shown(text: &str, names: &mut Vec<String>) {
    if !text.starts_with(['"', 'r']) {
        return;
    }
    for inside in text.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        let words = inside.split(|c: char| !c.is_alphanumeric() && c != '_');
        names.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }
}

/// The variable that a place is in, or a method is called on.
pub(super) fn root(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(inner) => root(&inner.expr),
        Expr::Group(inner) => root(&inner.expr),
        Expr::Unary(unary) => root(&unary.expr),
        Expr::Reference(reference) => root(&reference.expr),
        Expr::MethodCall(call) => root(&call.receiver),
        _ => None,
    }
}

/// The variables that an assignment writes.
pub(super) fn assigned(expr: &Expr, roots: &mut Vec<String>) {
    match expr {
        Expr::Tuple(parts) => parts.elems.iter().for_each(|part| assigned(part, roots)),
        Expr::Array(parts) => parts.elems.iter().for_each(|part| assigned(part, roots)),
        Expr::Call(call) => call.args.iter().for_each(|part| assigned(part, roots)),
        Expr::Struct(fields) => fields.fields.iter().for_each(|field| assigned(&field.expr, roots)),
        Expr::Paren(inner) => assigned(&inner.expr, roots),
        place => roots.extend(root(place)),
    }
}

/// Variables that may be changed after they were made.
#[derive(Default)]
pub(super) struct Mutable {
    names: HashSet<String>,
    /// A reference, and what it may change.
    pub(super) links: Vec<(String, String)>,
}

impl Mutable {
    pub(super) fn of(body: &Block) -> Mutable {
        let mut mutable = Mutable::default();
        mutable.visit_block(body);
        mutable
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The variables that an expression, by itself or somewhere in it, may change.
    pub(super) fn changed_by(&self, expr: &Expr) -> Vec<String> {
        struct Changes<'m>(&'m Mutable, Vec<String>);
        impl<'a> Visit<'a> for Changes<'_> {
            fn visit_expr(&mut self, expr: &'a Expr) {
                match expr {
                    Expr::Assign(assign) => assigned(&assign.left, &mut self.1),
                    Expr::Binary(binary) if super::super::walk::is_assignment(&binary.op) => {
                        self.1.extend(root(&binary.left));
                    }
                    Expr::MethodCall(call) => {
                        self.1.extend(root(&call.receiver).filter(|name| self.0.contains(name)));
                    }
                    Expr::Reference(reference) if reference.mutability.is_some() => {
                        self.1.extend(root(&reference.expr));
                    }
                    // A closure that changes what it captures.
                    Expr::Call(call) => self.1.extend(root(&call.func).filter(|name| self.0.contains(name))),
                    _ => {}
                }
                visit::visit_expr(self, expr);
            }
        }
        let mut changes = Changes(self, Vec::new());
        changes.visit_expr(expr);
        changes.1
    }
}

impl<'a> Visit<'a> for Mutable {
    fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
        if pattern.mutability.is_some() {
            self.names.insert(pattern.ident.to_string());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_local(&mut self, local: &'a Local) {
        if let Some(init) = &local.init {
            self.link(&local.pat, &init.expr);
        } else {
            // A variable that gets its value later.
            self.names.extend(names_of(&local.pat).iter().map(ToString::to_string));
        }
        visit::visit_local(self, local);
    }
}

impl Mutable {
    /// A value that is made with a mutable reference to something may change it.
    fn link(&mut self, pattern: &Pat, init: &Expr) {
        struct Borrows(Vec<String>);
        impl<'a> Visit<'a> for Borrows {
            fn visit_expr_reference(&mut self, reference: &'a syn::ExprReference) {
                if reference.mutability.is_some() {
                    self.0.extend(root(&reference.expr));
                }
                visit::visit_expr_reference(self, reference);
            }

            fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
                if call.method.to_string().ends_with("_mut") {
                    self.0.extend(root(&call.receiver));
                }
                visit::visit_expr_method_call(self, call);
            }
        }
        let mut borrows = Borrows(Vec::new());
        borrows.visit_expr(init);
        if let Expr::Closure(closure) = init {
            let inner = Mutable { names: self.names.clone(), links: Vec::new() };
            borrows.0.extend(inner.changed_by(&closure.body));
        }
        for name in names_of(pattern).iter().map(ToString::to_string) {
            for of in &borrows.0 {
                self.names.insert(name.clone());
                self.links.push((name.clone(), of.clone()));
            }
        }
    }
}
