//! Writing the slice.
use super::super::clauses::{Array, Input, Treatment};
use super::super::scope::names_of;
use super::super::walk::{followed_arguments, is_assignment};
use super::loops::{parameter, pattern};
use super::names::{Mutable, names};
use super::taint::Taint;
use quote::{ToTokens, quote};
use std::collections::HashSet;
use std::fmt::Display;
use syn::spanned::Spanned;
use syn::{
    BinOp, Block, Error, Expr, ExprForLoop, ExprIf, ExprLoop, ExprMatch, ExprMethodCall, ExprWhile, Item,
    Local, Result, Stmt, parse_quote,
};

/// A loop of the body's around a place.
struct Around {
    /// Whether it ends only by a `break`.
    endless: bool,
    /// Whether one has been left out, since its condition is not known.
    loose: bool,
}

/// Goes through the body until it knows all variables that subscripts and conditions need.
pub(super) struct Emitter<'a> {
    input: &'a Input,
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
    pub(super) fn new(input: &'a Input, taint: &'a Taint, mutable: &'a Mutable) -> Emitter<'a> {
        let (needed, around) = (HashSet::new(), Vec::new());
        Emitter { input, taint, mutable, needed, dropped: 0, around, substance: 0, errors: None }
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

    /// What some code depends on that the loop changes, in words.
    fn because(&self, tokens: &impl ToTokens) -> Option<String> {
        let (by, source) = self.taint.source(tokens)?;
        Some(if by == source { format!("`{source}`") } else { format!("`{by}`, and so on `{source}`") })
    }

    fn need(&mut self, tokens: &impl ToTokens) {
        self.needed.extend(names(tokens));
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
        self.input.arrays.iter().find(|array| array.treatment == Treatment::Served && array.name == *name)
    }

    fn mentions_served(&self, tokens: &impl ToTokens) -> bool {
        let names = names(tokens);
        let served = self.input.arrays.iter().filter(|array| array.treatment == Treatment::Served);
        served.into_iter().any(|array| names.iter().any(|name| array.name == name))
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
        self.expr(&init.expr, out);
        let is_free = self.taint.is_free(&init.expr);
        let is_needed = names_of(&local.pat).iter().any(|name| self.needed.contains(&name.to_string()));
        let Some((word, otherwise)) = &init.diverge else {
            if is_free && (is_needed || self.changes(&init.expr)) {
                self.need(&init.expr);
                out.push(Stmt::Local(local.clone()));
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

    /// What is done under a condition that is not known is done.
    fn drop_condition(&mut self, out: &mut Vec<Stmt>, act: impl FnOnce(&mut Self, &mut Vec<Stmt>)) {
        self.dropped += 1;
        let mut inside = Vec::new();
        act(self, &mut inside);
        self.dropped -= 1;
        if !inside.is_empty() {
            out.push(parse_quote!({ #(#inside)* }));
        }
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

    /// What an expression uses of served arrays, in the order in which it does.
    fn expr(&mut self, expr: &Expr, out: &mut Vec<Stmt>) {
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
                self.expr(&binary.left, out);
                let mut right = Vec::new();
                self.expr(&binary.right, &mut right);
                let guard = match binary.op {
                    BinOp::And(_) => quote!(),
                    _ => quote!(!),
                };
                let left = &binary.left;
                let is_let = matches!(&**left, Expr::Let(_)) || has_let(left);
                if right.is_empty() {
                } else if self.taint.is_free(left) && !is_let {
                    self.need(left);
                    out.push(parse_quote!(if #guard (#left) { #(#right)* }));
                } else {
                    out.extend(right);
                }
            }
            Expr::Closure(closure) => {
                if self.mentions_served(closure) {
                    self.error(
                        closure,
                        "what this closure uses of a served array cannot be found out before it is called: write a `for` \
                         loop, or say `prefetch = false`",
                    );
                }
            }
            Expr::Macro(call) => {
                for argument in followed_arguments(&call.mac).unwrap_or_default() {
                    self.expr(&argument, out);
                }
            }
            other => children(other).into_iter().for_each(|child| self.expr(child, out)),
        }
    }

    fn method(&mut self, call: &ExprMethodCall, out: &mut Vec<Stmt>) {
        if let Some(array) = self.served(&call.receiver) {
            call.args.iter().for_each(|argument| self.expr(argument, out));
            let (name, key) = (&array.name, &call.args[0]);
            if let Some(because) = self.because(key) {
                return self.error(
                    key,
                    format!(
                        "which key of `{name}` this is depends on {because}, which the loop changes: it cannot be fetched \
                         before the body runs. Compute subscripts from what the loop only reads (variables of one name count \
                         as one); or say `prefetch = false`, and keys are looked up one by one, but for those that `intend` \
                         names"
                    ),
                );
            }
            self.need(key);
            self.substance += 1;
            let method = call.method.to_string();
            let is_row = method == "row" || method == "add_row";
            out.push(match is_row {
                true => parse_quote!(#name.row(#key);),
                false => parse_quote!(#name.element(#key);),
            });
            return;
        }
        self.expr(&call.receiver, out);
        for argument in &call.args {
            match argument {
                Expr::Closure(closure) if self.mentions_served(&closure.body) => {
                    self.each_element(call, closure, out);
                }
                other => self.expr(other, out),
            }
        }
    }

    /// A closure that is called for each element of an iterator.
    fn each_element(&mut self, call: &ExprMethodCall, closure: &syn::ExprClosure, out: &mut Vec<Stmt>) {
        let receiver = &call.receiver;
        let Some(given) = parameter(&call.method, closure) else {
            return self.expr(&Expr::Closure(closure.clone()), out);
        };
        if let Some(because) = self.because(receiver) {
            return self.error(
                receiver,
                format!(
                    "what this runs through depends on {because}, which the loop changes: keys that are used for each \
                     of its elements cannot be known before"
                ),
            );
        }
        let (element, first) = pattern(closure, given);
        let mut inside = first;
        let empty = inside.len();
        self.around.push(Around { endless: false, loose: false });
        self.whole(&closure.body, &mut inside);
        self.around.pop();
        if inside.len() > empty {
            self.need(receiver);
            out.push(parse_quote!(for #element in #receiver { #(#inside)* }));
        }
    }

    fn branch(&mut self, branch: &ExprIf, out: &mut Vec<Stmt>) {
        let (guards, rest) = self.split(&branch.cond);
        let otherwise = branch.else_branch.as_ref().map(|(_, other)| &**other);
        if rest.is_empty() {
            let then = self.block(&branch.then_branch);
            let mut other = Vec::new();
            if let Some(otherwise) = otherwise {
                self.whole(otherwise, &mut other);
            }
            if !then.stmts.is_empty() || !other.is_empty() || self.changes(&branch.cond) {
                let cond = &branch.cond;
                self.need(cond);
                out.push(parse_quote!(if #cond #then else { #(#other)* }));
            }
            return;
        }
        // Under the conditions that are known, both ways.
        let mut inside = Vec::new();
        rest.iter().for_each(|cond| self.expr(cond, &mut inside));
        self.drop_condition(&mut inside, |emitter, out| out.extend(emitter.block(&branch.then_branch).stmts));
        if !inside.is_empty() {
            guards.iter().for_each(|guard| self.need(guard));
            out.push(match guards.is_empty() {
                true => parse_quote!({ #(#inside)* }),
                false => parse_quote!(if #(#guards)&&* { #(#inside)* }),
            });
        }
        if let Some(otherwise) = otherwise {
            self.drop_condition(out, |emitter, out| emitter.whole(otherwise, out));
        }
    }

    /// The first conditions of a conjunction that are known, and the others.
    fn split<'e>(&self, cond: &'e Expr) -> (Vec<&'e Expr>, Vec<&'e Expr>) {
        fn flatten<'e>(expr: &'e Expr, list: &mut Vec<&'e Expr>) {
            match expr {
                Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
                    flatten(&binary.left, list);
                    flatten(&binary.right, list);
                }
                other => list.push(other),
            }
        }
        let mut list = Vec::new();
        flatten(cond, &mut list);
        let known = list.iter().take_while(|cond| self.taint.is_free(**cond)).count();
        let rest = list.split_off(known);
        (list, rest)
    }

    fn choice(&mut self, choice: &ExprMatch, out: &mut Vec<Stmt>) {
        self.expr(&choice.expr, out);
        let guard_source = choice.arms.iter().find_map(|arm| {
            let (_, guard) = arm.guard.as_ref()?;
            self.taint.source(&**guard).map(|_| guard.span())
        });
        if !self.taint.is_free(&choice.expr) {
            for arm in &choice.arms {
                self.drop_condition(out, |emitter, out| {
                    if let Some((_, guard)) = &arm.guard {
                        emitter.expr(guard, out);
                    }
                    emitter.whole(&arm.body, out);
                });
            }
            return;
        }
        let mut sliced = choice.clone();
        let mut is_empty = true;
        for (arm, from) in sliced.arms.iter_mut().zip(&choice.arms) {
            let mut inside = Vec::new();
            self.whole(&from.body, &mut inside);
            is_empty &= inside.is_empty();
            arm.body = parse_quote!({ #(#inside)* });
            arm.comma = Some(Default::default());
        }
        if is_empty {
            return;
        }
        if let Some(span) = guard_source {
            return self.error(
                &span,
                "this guard depends on what the loop changes, and served arrays are used in the arms: write an `if` inside \
                 the arm",
            );
        }
        self.need(&choice.expr);
        for (_, guard) in choice.arms.iter().filter_map(|arm| arm.guard.as_ref()) {
            self.need(guard);
        }
        // So that the value is that of a statement.
        out.push(parse_quote!({ #sliced }));
    }

    /// The body of a loop; `None` if it uses nothing and changes nothing that is needed.
    fn turns(&mut self, body: &Block, endless: bool) -> Option<Block> {
        let before = self.substance;
        self.around.push(Around { endless, loose: false });
        let block = self.block(body);
        let around = self.around.pop();
        let is_used = self.substance > before;
        if is_used && around.is_some_and(|around| around.loose) {
            self.error(
                body,
                "this loop is left under a condition that depends on what the loop changes, so that it is not known before \
                 how far it goes: use a `for` loop, which has an end of its own",
            );
        }
        is_used.then_some(block)
    }

    fn for_loop(&mut self, inner: &ExprForLoop, out: &mut Vec<Stmt>) {
        self.expr(&inner.expr, out);
        let Some(body) = self.turns(&inner.body, false) else { return };
        if let Some(because) = self.because(&inner.expr) {
            return self.error(
                &inner.expr,
                format!(
                    "what this loop runs over depends on {because}, which the loop changes: the keys that it uses \
                     cannot be known before"
                ),
            );
        }
        let ExprForLoop { label, pat, expr, .. } = inner;
        self.need(expr);
        out.push(parse_quote!(#label for #pat in #expr #body));
    }

    fn while_loop(&mut self, inner: &ExprWhile, out: &mut Vec<Stmt>) {
        self.expr(&inner.cond, out);
        let Some(body) = self.turns(&inner.body, false) else { return };
        if let Some(because) = self.because(&*inner.cond) {
            return self.error(
                &inner.cond,
                format!(
                    "how often this loop turns depends on {because}, which the loop changes: the keys that it uses \
                     cannot be known before"
                ),
            );
        }
        let ExprWhile { label, cond, .. } = inner;
        self.need(cond);
        out.push(parse_quote!(#label while #cond #body));
    }

    fn endless_loop(&mut self, inner: &ExprLoop, out: &mut Vec<Stmt>) {
        let Some(body) = self.turns(&inner.body, true) else { return };
        let label = &inner.label;
        out.push(parse_quote!(#label loop #body));
    }

    /// Leaving a loop, or going on with the next turn.
    fn jump(&mut self, expr: &Expr, out: &mut Vec<Stmt>) {
        let (jump, leaves): (Stmt, bool) = match expr {
            Expr::Break(leave) => {
                if let Some(value) = &leave.expr {
                    self.expr(value, out);
                }
                let label = &leave.label;
                (parse_quote!(break #label;), true)
            }
            other => (parse_quote!(#other;), false),
        };
        if self.dropped == 0 {
            out.push(jump);
        } else if leaves {
            // Which loop it leaves does not matter: none that has no other end may be among them.
            let endless = self.around.iter_mut().filter(|around| around.endless);
            endless.for_each(|around| around.loose = true);
        }
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// The expressions in an expression without control flow of its own, in the order in which they are evaluated.
fn children(expr: &Expr) -> Vec<&Expr> {
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
