//! Writing the slice.
mod branches;
mod children;
mod jumps;
mod places;
mod turns;
mod uses;

use self::children::children;
use self::jumps::{Redirect, jumps, unknown};
use super::super::clauses::{Array, Input, Treatment};
use super::super::scope::names_of;
use super::super::walk::followed_arguments;
use super::names::{Mutable, names};
use super::taint::Taint;
use quote::{ToTokens, quote};
use std::collections::HashSet;
use std::fmt::Display;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Block, Error, Expr, Item, Local, Result, Stmt, parse_quote};

/// A loop of the body's around a place.
struct Around {
    label: Option<String>,
    /// Whether it ends only by a `break`.
    endless: bool,
    /// Whether one has been left out, since its condition is not known.
    loose: bool,
    /// How many conditions around the loop have been left out.
    dropped: usize,
}

/// Goes through the body until it knows all variables that subscripts and conditions need.
pub(super) struct Emitter<'a> {
    input: &'a Input,
    /// The slice names the keys of arrays of this treatment: of those that are kept, of the written ones.
    of: Treatment,
    taint: &'a Taint,
    mutable: &'a Mutable,
    needed: HashSet<String>,
    /// How many conditions around the place have been left out.
    dropped: usize,
    around: Vec<Around>,
    /// Counts what has been written that names keys or changes what is needed.
    substance: usize,
    errors: Option<Error>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        input: &'a Input,
        of: Treatment,
        taint: &'a Taint,
        mutable: &'a Mutable,
    ) -> Emitter<'a> {
        let (needed, around) = (HashSet::new(), Vec::new());
        Emitter { input, of, taint, mutable, needed, dropped: 0, around, substance: 0, errors: None }
    }

    pub(super) fn run(mut self, body: &Block) -> Result<Block> {
        loop {
            let before = self.needed.len();
            let block = self.block(body);
            if let Some(errors) = self.errors {
                return Err(errors);
            }
            for (reference, of) in &self.mutable.links {
                if self.needed.contains(of) {
                    self.needed.insert(reference.clone());
                }
            }
            if self.needed.len() == before {
                return Ok(block);
            }
        }
    }

    fn error(&mut self, at: &impl Spanned, message: impl Display) {
        let error = Error::new(at.span(), message);
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }

    /// The dependence of some code on what the loop changes, in words.
    fn because(&self, tokens: &impl ToTokens) -> Option<String> {
        let (by, source) = self.taint.source(tokens)?;
        Some(if by == source { format!("`{source}`") } else { format!("`{by}`, and so on `{source}`") })
    }

    fn need(&mut self, tokens: &impl ToTokens) {
        self.needed.extend(names(tokens));
    }

    /// Whether the slice names the keys of an array.
    fn is_named(&self, array: &Array) -> bool {
        array.treatment == self.of && array.written
    }

    fn served(&self, expr: &Expr) -> Option<&'a Array> {
        let Expr::Path(path) = expr else {
            return match expr {
                Expr::Paren(inner) => self.served(&inner.expr),
                Expr::Group(inner) => self.served(&inner.expr),
                _ => None,
            };
        };
        let name = path.path.get_ident()?;
        self.input.arrays.iter().find(|array| self.is_named(array) && array.name == *name)
    }

    fn mentions_served(&self, tokens: &impl ToTokens) -> bool {
        let names = names(tokens);
        let mut served = self.input.arrays.iter().filter(|array| self.is_named(array));
        served.any(|array| names.iter().any(|name| array.name == name))
    }

    /// Whether an expression changes something that is needed.
    fn changes(&self, expr: &Expr) -> bool {
        self.mutable.changed_by(expr).iter().any(|name| self.needed.contains(name))
    }

    fn block(&mut self, block: &Block) -> Block {
        let mut stmts = Vec::new();
        block.stmts.iter().for_each(|stmt| self.stmt(stmt, &mut stmts));
        Block { brace_token: block.brace_token, stmts }
    }

    fn stmt(&mut self, stmt: &Stmt, out: &mut Vec<Stmt>) {
        match stmt {
            Stmt::Local(local) => self.local(local, out),
            Stmt::Item(Item::Macro(_)) => {}
            Stmt::Item(_) => out.push(stmt.clone()),
            Stmt::Expr(expr, _) => self.whole(expr, out),
            Stmt::Macro(call) => match followed_arguments(&call.mac) {
                Some(arguments) => arguments.iter().for_each(|argument| self.expr(argument, out)),
                None => {
                    if self.taint.is_free(&call.mac.tokens)
                        && names(&call.mac.tokens).iter().any(|name| self.needed.contains(name))
                    {
                        self.need(&call.mac.tokens);
                        out.push(stmt.clone());
                    }
                }
            },
        }
    }

    fn local(&mut self, local: &Local, out: &mut Vec<Stmt>) {
        let Some(init) = &local.init else {
            if names_of(&local.pat).iter().any(|name| self.needed.contains(&name.to_string())) {
                out.push(Stmt::Local(local.clone()));
            }
            return;
        };
        let is_free = self.taint.is_free(&init.expr);
        if !is_free {
            self.expr(&init.expr, out);
        }
        let is_needed = names_of(&local.pat).iter().any(|name| self.needed.contains(&name.to_string()));
        let Some((word, otherwise)) = &init.diverge else {
            if is_free && (is_needed || self.changes(&init.expr)) {
                self.need(&init.expr);
                out.push(Stmt::Local(self.redirected(local)));
            } else if is_free && jumps(&init.expr) {
                self.expr(&init.expr, out);
            }
            return;
        };
        if is_free {
            self.need(&init.expr);
            let mut inside = Vec::new();
            self.whole(otherwise, &mut inside);
            let mut local = local.clone();
            if let Some(init) = &mut local.init {
                let diverge: Expr = parse_quote!({ #(#inside)* ::core::unreachable!() });
                init.diverge = Some((*word, Box::new(diverge)));
            }
            out.push(Stmt::Local(local));
        } else {
            self.drop_condition(out, |emitter, out| emitter.whole(otherwise, out));
        }
    }

    /// Code under a condition that is not known is run.
    fn drop_condition(&mut self, out: &mut Vec<Stmt>, act: impl FnOnce(&mut Self, &mut Vec<Stmt>)) {
        self.dropped += 1;
        let mut inside = Vec::new();
        act(self, &mut inside);
        let label = unknown(self.dropped);
        self.dropped -= 1;
        if !inside.is_empty() {
            out.push(parse_quote!(#label: { #(#inside)* }));
        }
    }

    /// A statement under conditions that are not known: what jumps over them only leaves the innermost.
    fn redirected(&self, local: &Local) -> Local {
        let mut local = local.clone();
        if self.dropped > self.around.last().map_or(0, |around| around.dropped) {
            Redirect { to: unknown(self.dropped), loops: 0 }.visit_local_mut(&mut local);
        }
        local
    }

    /// An expression whose value is not used.
    fn whole(&mut self, expr: &Expr, out: &mut Vec<Stmt>) {
        let before = out.len();
        self.expr(expr, out);
        if out.len() == before && self.changes(expr) && self.taint.is_free(expr) {
            self.need(expr);
            self.substance += 1;
            out.push(parse_quote!(#expr;));
        }
    }

    /// The uses of served arrays in an expression, in order.
    fn expr(&mut self, expr: &Expr, out: &mut Vec<Stmt>) {
        if !is_control(expr) && self.taint.is_free(expr) && !jumps(expr) {
            // It uses no served array.
            if self.changes(expr) {
                self.need(expr);
                self.substance += 1;
                out.push(parse_quote!(#expr;));
            }
            return;
        }
        match expr {
            Expr::MethodCall(call) => self.method(call, out),
            Expr::If(branch) => self.branch(branch, out),
            Expr::Match(choice) => self.choice(choice, out),
            Expr::ForLoop(inner) => self.for_loop(inner, out),
            Expr::While(inner) => self.while_loop(inner, out),
            Expr::Loop(inner) => self.endless_loop(inner, out),
            Expr::Break(_) | Expr::Continue(_) => self.jump(expr, out),
            Expr::Block(inner) => {
                let block = self.block(&inner.block);
                let label = &inner.label;
                if !block.stmts.is_empty() {
                    out.push(parse_quote!(#label #block));
                }
            }
            Expr::Unsafe(inner) => {
                let block = self.block(&inner.block);
                if !block.stmts.is_empty() {
                    out.push(parse_quote!(unsafe #block));
                }
            }
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
                let mut right = Vec::new();
                self.expr(&binary.right, &mut right);
                let guard = match binary.op {
                    BinOp::And(_) => quote!(),
                    _ => quote!(!),
                };
                let left = &binary.left;
                let is_let = matches!(&**left, Expr::Let(_)) || has_let(left);
                if !right.is_empty() && self.taint.is_free(left) && !is_let {
                    self.need(left);
                    out.push(parse_quote!(if #guard (#left) { #(#right)* }));
                } else {
                    self.expr(left, out);
                    out.extend(right);
                }
            }
            Expr::Closure(closure) => {
                if self.mentions_served(closure) {
                    self.error(
                        closure,
                        "the keys of a served array that this closure uses cannot be determined before it is called: write a `for` \
                         loop, or add `prefetch = false`",
                    );
                }
            }
            Expr::Macro(call) => {
                for argument in followed_arguments(&call.mac).unwrap_or_default() {
                    self.expr(&argument, out);
                }
            }
            other if self.of == Treatment::Kept => self.place(other, false, out),
            other => children(other).into_iter().for_each(|child| self.expr(child, out)),
        }
    }
}

/// Whether an expression decides what is done next.
fn is_control(expr: &Expr) -> bool {
    let breaks = matches!(expr, Expr::Break(_) | Expr::Continue(_) | Expr::Block(_) | Expr::Unsafe(_));
    let loops = matches!(expr, Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_));
    breaks || loops || matches!(expr, Expr::If(_) | Expr::Match(_) | Expr::Closure(_) | Expr::Let(_))
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}
