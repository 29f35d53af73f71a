//! Branches: those whose conditions are known, and those that are taken both ways.
use super::super::super::scope::guarded;
use super::Emitter;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprIf, ExprMatch, Stmt, parse_quote};

impl Emitter<'_> {
    pub(super) fn branch(&mut self, branch: &ExprIf, out: &mut Vec<Stmt>) {
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
        if !inside.is_empty() || guards.iter().any(|guard| self.changes(guard)) {
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
    pub(super) fn split<'e>(&self, cond: &'e Expr) -> (Vec<&'e Expr>, Vec<&'e Expr>) {
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

    pub(super) fn choice(&mut self, choice: &ExprMatch, out: &mut Vec<Stmt>) {
        let guard_source = choice.arms.iter().find_map(|arm| {
            let guard = guarded(arm).1?;
            self.taint.source(guard).map(|_| guard.span())
        });
        if !self.taint.is_free(&choice.expr) {
            self.expr(&choice.expr, out);
            for arm in &choice.arms {
                self.drop_condition(out, |emitter, out| {
                    if let Some(guard) = guarded(arm).1 {
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
        let guards = || choice.arms.iter().filter_map(|arm| guarded(arm).1);
        if is_empty && !guards().any(|guard| self.changes(guard)) {
            if self.changes(&choice.expr) {
                self.whole(&choice.expr, out);
            }
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
        for guard in guards() {
            self.need(guard);
        }
        // So that the value is that of a statement.
        out.push(parse_quote!({ #sliced }));
    }
}
