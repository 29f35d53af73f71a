//! What the body does: every access to a declared array, with its subscripts, and everything that may not be done.
mod access;
mod control;

use super::clauses::{Array, Input};
use super::form::{Form, Used, form};
use super::nest::{Nest, inner_range, inner_variable, mentions};
use super::scope::{Binding, Scopes, names_of};
use proc_macro2::TokenStream;
use quote::quote;
use std::fmt::Display;
use syn::visit::Visit;
use syn::{Arm, Block, Error, Expr, ExprMacro, Ident, Item, Local, Macro, Pat, Stmt, StmtMacro, Token};
use syn::{punctuated::Punctuated, spanned::Spanned};

/// How the value of a place is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Update,
}

/// Goes through the body of a loop.
pub(crate) struct Walker<'a> {
    input: &'a Input,
    root: &'a TokenStream,
    dims: usize,
    scopes: Scopes,
    pub(crate) used: Used,
    /// Code that completes the description `__nest`, in the order of the source.
    pub(crate) description: Vec<TokenStream>,
    inner: usize,
    errors: Option<Error>,
    control: control::Control,
    read: Vec<bool>,
    wrote: Vec<bool>,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(input: &'a Input, nest: &Nest<'_>) -> Walker<'a> {
        let arrays = input.arrays.len();
        let mut walker = Walker {
            input,
            root: &input.root,
            dims: nest.dims(),
            scopes: Scopes::default(),
            used: Used::default(),
            description: Vec::new(),
            inner: 0,
            errors: None,
            control: control::Control::default(),
            read: vec![false; arrays],
            wrote: vec![false; arrays],
        };
        walker.scopes.push();
        for (number, variable) in nest.variables.iter().enumerate() {
            walker.check_shadow(variable);
            walker.scopes.bind(variable, Binding::Form(Form::variable(number)));
        }
        if let super::nest::Space::Entries { value, .. } = &nest.space {
            walker.bind_pattern(value);
        }
        walker
    }

    /// Goes through the body; the expressions of the values from outside that the description uses.
    pub(crate) fn walk(&mut self, body: &Block) -> Result<Vec<Expr>, Error> {
        self.visit_block(body);
        for (number, array) in self.input.arrays.iter().enumerate() {
            let name = &array.name;
            match (self.read[number], self.wrote[number]) {
                (false, false) => self.error(name, format!("the body does not touch `{name}`: leave it out")),
                (true, false) if array.written => {
                    self.error(name, format!("the body only reads `{name}`: name it under `read`"));
                }
                _ => {}
            }
        }
        match self.errors.take() {
            Some(error) => Err(error),
            None => Ok(self.used.0.iter().map(|number| self.scopes.outside[*number].clone()).collect()),
        }
    }

    fn error(&mut self, at: &impl Spanned, message: impl Display) {
        let error = Error::new(at.span(), message);
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }

    fn array(&self, name: &Ident) -> Option<(usize, &'a Array)> {
        self.input.arrays.iter().enumerate().find(|(_, array)| array.name == *name)
    }

    /// The array that an expression names.
    fn array_of(&self, expr: &Expr) -> Option<(usize, &'a Array)> {
        match expr {
            Expr::Path(path) => self.array(path.path.get_ident()?),
            Expr::Paren(inner) => self.array_of(&inner.expr),
            Expr::Group(inner) => self.array_of(&inner.expr),
            _ => None,
        }
    }

    fn check_shadow(&mut self, name: &Ident) {
        if self.array(name).is_some() {
            self.error(name, format!("`{name}` is an array of this loop: give this variable another name"));
        } else if self.input.accumulators.iter().any(|accumulator| accumulator.name == *name) {
            self.error(
                name,
                format!("`{name}` is an accumulator of this loop: give this variable another name"),
            );
        }
    }

    fn bind_pattern(&mut self, pattern: &Pat) {
        names_of(pattern).iter().for_each(|name| self.check_shadow(name));
        self.scopes.bind_pattern(pattern);
    }

    fn bind_let(&mut self, pattern: &Pat, init: Option<&Expr>) {
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

    fn scoped(&mut self, act: impl FnOnce(&mut Self)) {
        self.scopes.push();
        act(self);
        self.scopes.pop();
    }

    /// Makes the variable of a loop in the body known, with bounds that hold in every iteration.
    fn bind_inner(&mut self, pattern: &Pat, range: &Expr) {
        let known = inner_variable(pattern).zip(inner_range(range));
        let Some((name, (start, end, closed))) = known else { return self.bind_pattern(pattern) };
        let root = self.root;
        let code = |form: Option<Form>, used: &mut Used| match form {
            Some(form) => form.code(root, used),
            None => quote!(::core::option::Option::None),
        };
        let first = form(start, &mut self.scopes);
        let last = form(end, &mut self.scopes).map(|form| form.plus_number(i64::from(closed)));
        let (first, last) = (code(first, &mut self.used), code(last, &mut self.used));
        let text = name.to_string();
        self.description.push(quote!(#root::describe::inner(__nest, #text, #first, #last);));
        self.check_shadow(&name);
        self.scopes.bind(&name, Binding::Form(Form::variable(self.dims + self.inner)));
        self.inner += 1;
    }

    fn names(&self) -> Vec<Ident> {
        let arrays = self.input.arrays.iter().map(|array| array.name.clone());
        arrays.chain(self.input.accumulators.iter().map(|accumulator| accumulator.name.clone())).collect()
    }

    fn visit_macro_call(&mut self, call: &Macro) {
        const FOLLOWED: [&str; 15] = [
            "assert",
            "assert_eq",
            "assert_ne",
            "debug_assert",
            "debug_assert_eq",
            "debug_assert_ne",
            "print",
            "println",
            "eprint",
            "eprintln",
            "format",
            "panic",
            "vec",
            "unreachable",
            "dbg",
        ];
        let name = call.path.segments.last().map(|segment| segment.ident.to_string());
        let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        match arguments {
            Ok(arguments) if name.is_some_and(|name| FOLLOWED.contains(&name.as_str())) => {
                arguments.iter().for_each(|argument| self.visit_expr(argument));
            }
            _ if mentions(&call.tokens, &self.names()) => self.error(
                &call.path,
                "what this macro does to the loop's arrays and accumulators cannot be seen: bind what it needs to \
                 variables first",
            ),
            _ => {}
        }
    }
}

impl<'a> Visit<'a> for Walker<'_> {
    fn visit_block(&mut self, block: &'a Block) {
        self.scoped(|walker| block.stmts.iter().for_each(|stmt| walker.visit_stmt(stmt)));
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Local(local) => self.visit_local(local),
            Stmt::Item(Item::Const(item)) => self.scopes.bind(&item.ident, Binding::Other),
            Stmt::Item(Item::Static(item)) => self.scopes.bind(&item.ident, Binding::Other),
            // Functions and types cannot reach the loop's variables.
            Stmt::Item(_) => {}
            Stmt::Expr(expr, _) => self.visit_expr(expr),
            Stmt::Macro(StmtMacro { mac, .. }) => self.visit_macro_call(mac),
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        let init = local.init.as_ref();
        if let Some(init) = init {
            self.visit_expr(&init.expr);
            if let Some((_, diverge)) = &init.diverge {
                self.visit_expr(diverge);
            }
        }
        self.bind_let(&local.pat, init.map(|init| &*init.expr));
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        self.scoped(|walker| {
            walker.bind_pattern(&arm.pat);
            if let Some((_, guard)) = &arm.guard {
                walker.visit_expr(guard);
            }
            walker.visit_expr(&arm.body);
        });
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        for accumulator in &self.input.accumulators {
            if let Some(value) = accumulator.added(expr) {
                return self.visit_expr(value);
            }
        }
        if self.visit_control(expr) {
            return;
        }
        match expr {
            Expr::Assign(assign) => {
                self.visit_expr(&assign.right);
                self.place(&assign.left, Mode::Write);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                self.visit_expr(&binary.right);
                self.place(&binary.left, Mode::Update);
            }
            Expr::Reference(reference) => {
                let mode = if reference.mutability.is_some() { Mode::Update } else { Mode::Read };
                self.place(&reference.expr, mode);
            }
            Expr::Index(_) | Expr::Field(_) | Expr::Path(_) => self.place(expr, Mode::Read),
            Expr::MethodCall(call) => self.visit_method(call),
            Expr::Let(condition) => {
                self.visit_expr(&condition.expr);
                self.bind_pattern(&condition.pat);
            }
            Expr::Macro(ExprMacro { mac, .. }) => self.visit_macro_call(mac),
            other => syn::visit::visit_expr(self, other),
        }
    }
}

fn is_assignment(op: &syn::BinOp) -> bool {
    use syn::BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}
