//! The bindings of the body.
use super::super::affine::form;
use super::super::form::{Form, Used};
use super::super::nest::{inner_range, inner_variable};
use super::super::scope::{Binding, names_in, names_of, names_of_use};
use super::Walker;
use super::macros::is_followed;
use quote::quote;
use syn::{Attribute, Block, Expr, Ident, Item, Macro, Pat, Stmt};

impl Walker<'_> {
    pub(super) fn check_shadow(&mut self, name: &Ident) {
        if self.array(name).is_some() {
            self.error(name, format!("`{name}` is an array of this loop: give this variable another name"));
        } else if self.input.accumulators.iter().any(|accumulator| accumulator.name == *name) {
            self.error(
                name,
                format!("`{name}` is an accumulator of this loop: give this variable another name"),
            );
        }
    }

    pub(super) fn bind_pattern(&mut self, pattern: &Pat) {
        names_of(pattern).iter().for_each(|name| self.check_shadow(name));
        self.scopes.bind_pattern(pattern);
    }

    pub(super) fn bind_let(&mut self, pattern: &Pat, init: Option<&Expr>) {
        match (pattern, init) {
            (Pat::Type(typed), init) => self.bind_let(&typed.pat, init),
            (Pat::Tuple(names), Some(Expr::Tuple(values))) if names.elems.len() == values.elems.len() => {
                // All values first: `let (i, j) = (j, i)` means the outer names.
                let forms: Vec<_> = values.elems.iter().map(|value| form(value, &mut self.scopes)).collect();
                for (name, form) in names.elems.iter().zip(forms) {
                    self.bind_form(name, form);
                }
            }
            (pattern, Some(init)) => {
                let form = form(init, &mut self.scopes);
                self.bind_form(pattern, form);
            }
            (pattern, None) => self.bind_pattern(pattern),
        }
    }

    fn bind_form(&mut self, pattern: &Pat, form: Option<Form>) {
        match (inner_variable(pattern), form) {
            (Some(name), Some(form)) => {
                self.check_shadow(&name);
                self.scopes.bind(&name, Binding::Form(form));
            }
            _ => self.bind_pattern(pattern),
        }
    }

    /// Makes the variable of a loop in the body known, with bounds that hold in every iteration.
    pub(super) fn bind_inner(&mut self, pattern: &Pat, range: &Expr) {
        let known = inner_variable(pattern).zip(inner_range(range));
        let Some((name, (start, end, closed))) = known else { return self.bind_pattern(pattern) };
        let root = self.root;
        let code = |form: Option<Form>, used: &mut Used| match form {
            Some(form) => form.unwrapped().code(root, used),
            None => quote!(::core::option::Option::None),
        };
        let first = form(start, &mut self.scopes);
        let last = form(end, &mut self.scopes);
        let variable = Form::inner(self.dims + self.inner, [first.as_ref(), last.as_ref()]);
        let last = last.map(|form| form.plus_number(i64::from(closed)));
        let (first, last) = (code(first, &mut self.used), code(last, &mut self.used));
        let text = name.to_string();
        self.description.push(quote!(#root::describe::inner(__nest, #text, #first, #last);));
        self.check_shadow(&name);
        self.scopes.bind(&name, Binding::Form(variable));
        self.inner += 1;
    }

    /// Items are seen in all of their block, also before they stand.
    pub(super) fn bind_items(&mut self, block: &Block) {
        for stmt in &block.stmts {
            match stmt {
                Stmt::Item(Item::Const(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Static(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Struct(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Enum(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Type(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Mod(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Trait(item)) => self.bind_item(&item.ident),
                Stmt::Item(Item::Use(item)) => {
                    let mut names = Vec::new();
                    let has_others = names_of_use(&item.tree, &mut names);
                    names.iter().for_each(|name| self.bind_item(name));
                    if has_others {
                        self.scopes.make_opaque();
                    }
                }
                Stmt::Macro(call) if !is_followed(&call.mac) => self.scopes.make_opaque(),
                _ => {}
            }
        }
    }

    fn bind_item(&mut self, name: &Ident) {
        self.check_shadow(name);
        self.scopes.bind(name, Binding::Other);
    }

    /// A macro may stand for a `let` of any name that it is given.
    pub(super) fn bind_arguments(&mut self, call: &Macro) {
        let mut names = Vec::new();
        names_in(call.tokens.clone(), &mut names);
        names.iter().for_each(|name| self.scopes.bind(name, Binding::Other));
    }
}

/// Whether something may be left out of the program.
pub(super) fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr"))
}
