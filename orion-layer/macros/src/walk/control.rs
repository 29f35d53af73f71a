//! Control flow: what stays within an iteration, and what would leave it.
use super::Walker;
use syn::visit::Visit;
use syn::{Expr, Label, Lifetime};

/// The surroundings of a place in the body.
#[derive(Default)]
pub(super) struct Control {
    /// Closures around it.
    closures: usize,
    /// Loops of the body's own around it, inside the innermost closure; with their labels.
    loops: Vec<Option<Lifetime>>,
}

impl Walker<'_> {
    fn in_loop(&mut self, label: Option<&Label>, act: impl FnOnce(&mut Self)) {
        self.control.loops.push(label.map(|label| label.name.clone()));
        self.scoped(act);
        self.control.loops.pop();
    }

    /// Visits an expression that is about control flow; whether it was one.
    pub(super) fn visit_control(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::ForLoop(inner) => {
                self.visit_expr(&inner.expr);
                self.in_loop(inner.label.as_ref(), |walker| {
                    walker.bind_inner(&inner.pat, &inner.expr);
                    walker.visit_block(&inner.body);
                });
            }
            Expr::While(inner) => self.in_loop(inner.label.as_ref(), |walker| {
                walker.visit_expr(&inner.cond);
                walker.visit_block(&inner.body);
            }),
            Expr::Loop(inner) => {
                self.in_loop(inner.label.as_ref(), |walker| walker.visit_block(&inner.body));
            }
            Expr::Block(block) => match &block.label {
                // A labelled block can be left like a loop, by its label only.
                Some(label) => {
                    self.control.loops.push(Some(label.name.clone()));
                    self.visit_block(&block.block);
                    self.control.loops.pop();
                }
                None => self.visit_block(&block.block),
            },
            Expr::If(branch) => {
                self.scoped(|walker| {
                    walker.visit_expr(&branch.cond);
                    walker.visit_block(&branch.then_branch);
                });
                if let Some((_, other)) = &branch.else_branch {
                    self.visit_expr(other);
                }
            }
            Expr::Closure(closure) => {
                let loops = std::mem::take(&mut self.control.loops);
                self.control.closures += 1;
                self.scoped(|walker| {
                    closure.inputs.iter().for_each(|input| walker.bind_pattern(input));
                    walker.visit_expr(&closure.body);
                });
                self.control.closures -= 1;
                self.control.loops = loops;
            }
            Expr::Break(leave) => {
                if let Some(value) = &leave.expr {
                    self.visit_expr(value);
                }
                let advice = "`break` would end the loop early, and its iterations run on many workers: let the body \
                              do nothing instead, under a condition that does not depend on what other iterations did";
                self.check_leave(expr, leave.label.as_ref(), true, advice);
            }
            Expr::Continue(next) => {
                let advice = "this label does not belong to a loop inside the body";
                self.check_leave(expr, next.label.as_ref(), false, advice);
            }
            Expr::Return(leave) => {
                if let Some(value) = &leave.expr {
                    self.visit_expr(value);
                }
                if self.control.closures == 0 {
                    self.error(
                        expr,
                        "`return` would leave a loop whose iterations run on many workers; `continue` ends the iteration",
                    );
                }
            }
            Expr::Try(question) => {
                self.visit_expr(&question.expr);
                if self.control.closures == 0 {
                    self.error(
                        &question.question_token,
                        "`?` would leave a loop whose iterations run on many workers: count failures in an accumulator, \
                         or panic, which every worker reports",
                    );
                }
            }
            Expr::Await(_) | Expr::Async(_) | Expr::Yield(_) => {
                self.error(expr, "the body of a parallel loop cannot be asynchronous");
            }
            _ => return false,
        }
        true
    }

    fn check_leave(&mut self, expr: &Expr, label: Option<&Lifetime>, leaves: bool, advice: &str) {
        let inside = match label {
            Some(label) => self.control.loops.iter().flatten().any(|known| known.ident == label.ident),
            // A plain `continue` ends the iteration. In a closure, the compiler has its own word to say.
            None => !leaves || !self.control.loops.is_empty() || self.control.closures > 0,
        };
        if !inside {
            self.error(expr, advice);
        }
    }
}
