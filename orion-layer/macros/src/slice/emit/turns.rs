//! Loops, and what is called for each element.
use super::super::loops::{parameter, pattern};
use super::{Around, Emitter};
use syn::{Block, Expr, ExprClosure, ExprForLoop, ExprLoop, ExprMethodCall, ExprWhile, Stmt, parse_quote};

impl Emitter<'_> {
    /// A closure that is called for each element of an iterator.
    pub(super) fn each_element(&mut self, call: &ExprMethodCall, closure: &ExprClosure, out: &mut Vec<Stmt>) {
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

    /// The body of a loop; `None` if it uses nothing and changes nothing that is needed.
    pub(super) fn turns(&mut self, body: &Block, endless: bool) -> Option<Block> {
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

    pub(super) fn for_loop(&mut self, inner: &ExprForLoop, out: &mut Vec<Stmt>) {
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

    pub(super) fn while_loop(&mut self, inner: &ExprWhile, out: &mut Vec<Stmt>) {
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

    pub(super) fn endless_loop(&mut self, inner: &ExprLoop, out: &mut Vec<Stmt>) {
        let Some(body) = self.turns(&inner.body, true) else { return };
        let label = &inner.label;
        out.push(parse_quote!(#label loop #body));
    }

    /// Leaving a loop, or going on with the next turn.
    pub(super) fn jump(&mut self, expr: &Expr, out: &mut Vec<Stmt>) {
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
