//! Loops, and what is called for each element.
use super::super::loops::{is_endless, parameter, pattern};
use super::jumps::unknown;
use super::{Around, Emitter};
use syn::{
    Block, Expr, ExprClosure, ExprForLoop, ExprLoop, ExprMethodCall, ExprWhile, Lifetime, Stmt, parse_quote,
};

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
                    "what this iterates over depends on {because}, which the loop changes: keys that are used for each \
                     of its elements cannot be known in advance"
                ),
            );
        }
        if is_endless(receiver) {
            return self.error(
                receiver,
                "this iterates over something unbounded, so that the number of iterations is not known in advance: give \
                 it an end (`take`), or add `prefetch = false`",
            );
        }
        let (element, first) = pattern(closure, given);
        let mut inside = first;
        let empty = inside.len();
        self.enter(None, false);
        self.whole(&closure.body, &mut inside);
        self.around.pop();
        if inside.len() > empty || self.changes(receiver) {
            self.need(receiver);
            let turn = self.turn();
            out.push(parse_quote!(for #element in #receiver { #turn #(#inside)* }));
        }
    }

    fn enter(&mut self, label: Option<&Lifetime>, endless: bool) {
        let label = label.map(|label| label.ident.to_string());
        self.around.push(Around { label, endless, loose: false, dropped: self.dropped });
    }

    /// Counts turns: a slice may go on where the body stops, and must end all the same.
    fn turn(&self) -> Stmt {
        let root = &self.input.root;
        parse_quote!(__turns = #root::describe::turn(__turns);)
    }

    /// The body of a loop; `None` if it uses nothing and changes nothing that is needed, and nor does the head.
    fn turns(
        &mut self,
        body: &Block,
        label: Option<&Lifetime>,
        head: &[&Expr],
        endless: bool,
    ) -> Option<Block> {
        let before = self.substance;
        self.enter(label, endless);
        let mut block = self.block(body);
        let around = self.around.pop();
        self.substance +=
            usize::from(head.iter().any(|head| self.taint.is_free(*head) && self.changes(head)));
        let is_used = self.substance > before;
        if is_used && around.is_some_and(|around| around.loose) {
            self.error(
                body,
                "the exit of this loop depends on what the loop changes, so that the number of iterations is not known in advance: \
                 use a `for` loop with a fixed end, or add `prefetch = false`",
            );
        }
        block.stmts.insert(0, self.turn());
        is_used.then_some(block)
    }

    pub(super) fn for_loop(&mut self, inner: &ExprForLoop, out: &mut Vec<Stmt>) {
        let because = self.because(&inner.expr);
        if because.is_some() {
            self.expr(&inner.expr, out);
        }
        let label = inner.label.as_ref().map(|label| &label.name);
        let endless = is_endless(&inner.expr);
        let Some(body) = self.turns(&inner.body, label, &[&inner.expr], endless) else { return };
        if let Some(because) = because {
            return self.error(
                &inner.expr,
                format!(
                    "what this loop runs over depends on {because}, which the loop changes: the keys that it uses \
                     cannot be known in advance"
                ),
            );
        }
        let ExprForLoop { label, pat, expr, .. } = inner;
        self.need(expr);
        out.push(parse_quote!(#label for #pat in #expr #body));
    }

    pub(super) fn while_loop(&mut self, inner: &ExprWhile, out: &mut Vec<Stmt>) {
        let because = self.because(&*inner.cond);
        if because.is_some() {
            self.expr(&inner.cond, out);
        }
        let label = inner.label.as_ref().map(|label| &label.name);
        let Some(body) = self.turns(&inner.body, label, &[&inner.cond], false) else { return };
        if let Some(because) = because {
            return self.error(
                &inner.cond,
                format!(
                    "the number of iterations of this loop depends on {because}, which the loop changes: the keys that it uses \
                     cannot be known in advance"
                ),
            );
        }
        let ExprWhile { label, cond, .. } = inner;
        self.need(cond);
        out.push(parse_quote!(#label while #cond #body));
    }

    pub(super) fn endless_loop(&mut self, inner: &ExprLoop, out: &mut Vec<Stmt>) {
        let label = inner.label.as_ref().map(|label| &label.name);
        let Some(body) = self.turns(&inner.body, label, &[], true) else { return };
        let label = &inner.label;
        out.push(parse_quote!(#label loop #body));
    }

    /// Leaving a loop, or going on with the next turn.
    pub(super) fn jump(&mut self, expr: &Expr, out: &mut Vec<Stmt>) {
        let (jump, leaves, label): (Stmt, bool, _) = match expr {
            Expr::Break(leave) => {
                if let Some(value) = &leave.expr {
                    self.expr(value, out);
                }
                let label = &leave.label;
                (parse_quote!(break #label;), true, label.as_ref())
            }
            Expr::Continue(next) => (parse_quote!(#next;), false, next.label.as_ref()),
            _ => return,
        };
        let label = label.map(|label| label.ident.to_string());
        let target = self.around.iter_mut().rev().find(|around| label.is_none() || around.label == label);
        if self.dropped == target.as_ref().map_or(0, |around| around.dropped) {
            return out.push(jump);
        }
        // Whether it is come to is not known. If it is, what is left of the innermost such condition is not done.
        if let Some(around) = target.filter(|_| leaves) {
            around.loose |= around.endless;
        }
        let label = unknown(self.dropped);
        out.push(parse_quote!(break #label;));
    }
}
