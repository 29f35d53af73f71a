//! Walks the body: every access to a declared array, with its subscripts, and everything that is refused.
mod access;
mod bind;
mod captured;
mod control;
mod macros;

pub(crate) use self::macros::followed_arguments;
use super::clauses::{Array, Input};
use super::form::{Form, Used};
use super::lines::Site;
use super::nest::{Nest, mentions};
use super::scope::{Binding, Scopes, guarded, writes};
use super::text::text;
use proc_macro2::TokenStream;
use std::fmt::Display;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Arm, Block, Error, Expr, ExprMacro, Ident, Item, Local, PointerMutability, Stmt, StmtMacro};

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
    scopes: Scopes<'a>,
    pub(crate) used: Used,
    /// Code that completes the description `__nest`, in the order of the source.
    pub(crate) description: Vec<TokenStream>,
    /// Variables from outside that the body uses, and fields of them, each once.
    pub(crate) captured: Vec<Expr>,
    /// In how many pieces of code it is whose variables are not noted.
    unseen: usize,
    inner: usize,
    /// Whether the place is among the arguments of a macro.
    in_macro: bool,
    /// Whether subscripts of written arrays come from data.
    pub(crate) is_irregular: bool,
    errors: Option<Error>,
    control: control::Control,
    read: Vec<bool>,
    wrote: Vec<bool>,
    /// Accesses to elements that can be followed.
    pub(crate) sites: Vec<Site>,
    /// Whether an array is accessed in any other way.
    pub(crate) others: Vec<bool>,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(input: &'a Input, nest: &Nest<'_>) -> Walker<'a> {
        let arrays = input.arrays.len();
        let mut walker = Walker {
            input,
            root: &input.root,
            dims: nest.dims(),
            scopes: Scopes::new(&input.ambiguous),
            used: Used::default(),
            description: Vec::new(),
            captured: Vec::new(),
            unseen: 0,
            inner: 0,
            in_macro: false,
            is_irregular: false,
            errors: None,
            control: control::Control::default(),
            read: vec![false; arrays],
            wrote: vec![false; arrays],
            sites: Vec::new(),
            others: vec![false; arrays],
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
                _ if self.errors.is_some() => {}
                (false, false) => self.error(name, format!("the body does not use `{name}`: omit it")),
                (true, false) if array.written => {
                    self.error(name, format!("the body only reads `{name}`: name it under `read`, where its elements are `{name}[i]`"));
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

    fn scoped(&mut self, act: impl FnOnce(&mut Self)) {
        self.scopes.push();
        act(self);
        self.scopes.pop();
    }

    /// The expression that a pattern is matched with.
    fn matched(&mut self, expr: &Expr, is_written: bool) {
        self.place(expr, if is_written { Mode::Update } else { Mode::Read });
    }

    fn names(&self) -> Vec<Ident> {
        let arrays = self.input.arrays.iter().map(|array| array.name.clone());
        arrays.chain(self.input.accumulators.iter().map(|accumulator| accumulator.name.clone())).collect()
    }
}

impl<'a> Visit<'a> for Walker<'_> {
    fn visit_block(&mut self, block: &'a Block) {
        self.scoped(|walker| {
            walker.bind_items(block);
            block.stmts.iter().for_each(|stmt| walker.visit_stmt(stmt));
        });
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Local(local) => self.visit_local(local),
            Stmt::Item(Item::Macro(item)) => {
                if mentions(&item.mac.tokens, &self.names()) {
                    self.error(
                        item,
                        "a macro that uses the loop's arrays or accumulators cannot be analyzed: pass it plain values",
                    );
                }
            }
            // Functions and types cannot reach the loop's variables.
            Stmt::Item(_) => {}
            // An attribute may take it away.
            Stmt::Expr(expr, _) if text(expr).starts_with('#') => {
                self.unseen(|walker| walker.visit_expr(expr));
            }
            Stmt::Expr(expr, _) => self.visit_expr(expr),
            Stmt::Macro(StmtMacro { mac, attrs, .. }) => {
                match bind::is_conditional(attrs) {
                    true => self.unseen(|walker| walker.visit_macro_call(mac)),
                    false => self.visit_macro_call(mac),
                }
                if !macros::is_followed(mac) {
                    self.bind_arguments(mac);
                }
            }
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        let init = local.init.as_ref();
        self.unseen += usize::from(bind::is_conditional(&local.attrs));
        if let Some(init) = init {
            self.matched(&init.expr, writes(&local.pat));
            if let Some((_, diverge)) = &init.diverge {
                self.visit_expr(diverge);
            }
        }
        self.unseen -= usize::from(bind::is_conditional(&local.attrs));
        if bind::is_conditional(&local.attrs) {
            self.bind_pattern(&local.pat);
        } else {
            self.bind_let(&local.pat, init.map(|init| &*init.expr));
        }
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        let unseen = usize::from(bind::is_conditional(&arm.attrs));
        self.unseen += unseen;
        self.scoped(|walker| {
            let (pattern, guard) = guarded(arm);
            walker.bind_pattern(pattern);
            if let Some(guard) = guard {
                walker.visit_expr(guard);
            }
            walker.visit_expr(&arm.body);
        });
        self.unseen -= unseen;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        for accumulator in &self.input.accumulators {
            if !self.in_macro
                && let Some(added) = accumulator.added(expr)
            {
                return added.parts().into_iter().for_each(|part| self.visit_expr(part));
            }
        }
        if self.visit_control(expr) {
            return;
        }
        match expr {
            Expr::Assign(assign) => {
                self.visit_expr(&assign.right);
                self.assigned(&assign.left);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                self.visit_expr(&binary.right);
                self.place(&binary.left, Mode::Update);
            }
            Expr::Reference(reference) => {
                let mode = if reference.mutability.is_some() { Mode::Update } else { Mode::Read };
                self.place(&reference.expr, mode);
            }
            Expr::RawAddr(address) => {
                let is_mut = matches!(address.mutability, PointerMutability::Mut(_));
                self.place(&address.expr, if is_mut { Mode::Update } else { Mode::Read });
            }
            Expr::Match(choice) => {
                self.matched(&choice.expr, choice.arms.iter().any(|arm| writes(guarded(arm).0)));
                choice.arms.iter().for_each(|arm| self.visit_arm(arm));
            }
            Expr::Index(_) | Expr::Field(_) | Expr::Path(_) => self.place(expr, Mode::Read),
            Expr::MethodCall(call) => self.visit_method(call),
            // A name that is called is a function, or a closure of values.
            Expr::Call(call) => {
                match &*call.func {
                    Expr::Path(_) => self.unseen(|walker| walker.visit_expr(&call.func)),
                    func => self.visit_expr(func),
                }
                call.args.iter().for_each(|argument| self.visit_expr(argument));
            }
            // There may be fields that are read in unsafe code only.
            Expr::Unsafe(code) => self.unseen(|walker| walker.visit_block(&code.block)),
            Expr::Let(condition) => {
                self.matched(&condition.expr, writes(&condition.pat));
                self.bind_pattern(&condition.pat);
            }
            Expr::Verbatim(tokens) if mentions(tokens, &self.names()) => {
                self.error(
                    tokens,
                    "this syntax cannot be analyzed: use the loop's arrays and accumulators outside of it",
                );
            }
            Expr::Macro(ExprMacro { mac, .. }) => self.visit_macro_call(mac),
            other => syn::visit::visit_expr(self, other),
        }
    }
}

pub(crate) fn is_assignment(op: &syn::BinOp) -> bool {
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
