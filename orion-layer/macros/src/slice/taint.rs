//! Which variables of the body depend on values that the loop changes.
use super::super::clauses::{Input, Treatment};
use super::super::scope::{guarded, names_of};
use super::super::walk::is_assignment;
use super::loops::exhausts;
use super::names::{Mutable, assigned, names, root};
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ExprClosure, ExprMethodCall, Label, Lifetime, Local};

/// The changing source of a name: itself, if it is an array or an accumulator of the loop.
pub(super) struct Taint {
    /// By the name of a variable, the array or accumulator.
    sources: HashMap<String, String>,
}

impl Taint {
    pub(super) fn of(input: &Input, body: &Block, mutable: &Mutable) -> Taint {
        let changing =
            |array: &&super::super::clauses::Array| array.written || array.treatment != Treatment::Kept;
        let arrays = input.arrays.iter().filter(changing).map(|array| array.name.to_string());
        let accumulators = input.accumulators.iter().map(|accumulator| accumulator.name.to_string());
        let sources = arrays.chain(accumulators).map(|name| (name.clone(), name)).collect();
        let mut taint = Taint { sources };
        let mut loose = HashSet::new();
        loop {
            let before = (taint.sources.len(), loose.len());
            let mut spread = Spread {
                taint: &mut taint,
                loose: &mut loose,
                mutable,
                under: vec![Under::default()],
                seen: 0,
                around: Vec::new(),
            };
            spread.visit_block(body);
            for (reference, of) in &mutable.links {
                if let Some(source) = taint.sources.get(reference).cloned() {
                    taint.sources.entry(of.clone()).or_insert(source);
                }
            }
            if (taint.sources.len(), loose.len()) == before {
                return taint;
            }
        }
    }

    /// The dependence of some code on what the loop changes: the name in it, and the array or accumulator.
    pub(super) fn source(&self, tokens: &impl ToTokens) -> Option<(String, String)> {
        let known = |name: String| self.sources.get(&name).cloned().map(|source| (name, source));
        names(tokens).into_iter().find_map(known)
    }

    pub(super) fn is_free(&self, tokens: &impl ToTokens) -> bool {
        self.source(tokens).is_none()
    }
}

/// A condition around a place.
#[derive(Default)]
struct Under {
    /// Its changing source.
    source: Option<String>,
    /// The variables that are declared under it.
    declared: HashSet<String>,
}

/// A loop around a place.
struct Around {
    /// In the order of the source.
    number: usize,
    label: Option<String>,
    /// Conditions around it, its own among them.
    under: usize,
}

/// One walk through the body.
struct Spread<'t> {
    taint: &'t mut Taint,
    /// Loops, by their number in the order of the source, that may be left or continued under such a condition.
    loose: &'t mut HashSet<usize>,
    mutable: &'t Mutable,
    /// The body, and the conditions around the place that depend on what changes.
    under: Vec<Under>,
    seen: usize,
    around: Vec<Around>,
}

impl Spread<'_> {
    fn taint_names(&mut self, names: impl IntoIterator<Item = String>, source: &str) {
        for name in names {
            self.taint.sources.entry(name).or_insert_with(|| source.to_owned());
        }
    }

    fn taint_pattern(&mut self, pattern: &syn::Pat, source: &str) {
        self.taint_names(names_of(pattern).iter().map(ToString::to_string), source);
    }

    fn source(&self, tokens: &impl ToTokens) -> Option<String> {
        self.taint.source(tokens).map(|(_, source)| source)
    }

    /// Visits what is done under a condition.
    fn under(&mut self, source: Option<String>, act: impl FnOnce(&mut Self)) {
        let depth = self.under.len();
        if source.is_some() {
            self.under.push(Under { source, declared: HashSet::new() });
        }
        act(self);
        self.under.truncate(depth);
    }

    fn in_loop(&mut self, label: Option<&Label>, source: Option<String>, act: impl FnOnce(&mut Self)) {
        let number = self.seen;
        self.seen += 1;
        let label = label.map(|label| label.name.ident.to_string());
        let loose = self.loose.contains(&number).then(|| "the values of the loop".to_owned());
        let source = source.or(loose);
        let under = self.under.len() + usize::from(source.is_some());
        self.around.push(Around { number, label, under });
        self.under(source, act);
        self.around.pop();
    }

    /// A jump: the loops that it leaves or continues may turn otherwise, if conditions between them and it do.
    fn jump(&mut self, label: Option<&Lifetime>) {
        let label = label.map(|label| label.ident.to_string());
        let target = self.around.iter().rposition(|around| label.is_none() || around.label == label);
        let crossed = &self.around[target.unwrap_or(self.around.len())..];
        let loose =
            crossed.iter().filter(|around| around.under < self.under.len()).map(|around| around.number);
        self.loose.extend(loose);
    }

    fn declare(&mut self, pattern: &syn::Pat) {
        if let Some(under) = self.under.last_mut() {
            under.declared.extend(names_of(pattern).iter().map(ToString::to_string));
        }
    }

    /// Assignments, and calls with a place to change.
    fn change(&mut self, roots: Vec<String>, by: Option<String>) {
        for root in roots {
            // A condition around the declaration of a variable does not matter to it.
            let outer = self.under.iter().rposition(|under| under.declared.contains(&root)).unwrap_or(0);
            let around = self.under[outer + 1..].iter().rev().find_map(|under| under.source.clone());
            if let Some(source) = by.clone().or(around) {
                self.taint_names([root], &source);
            }
        }
    }

    fn closures(&mut self, call: &ExprMethodCall) {
        let receiver = self.source(&call.receiver);
        for argument in &call.args {
            let Expr::Closure(closure) = argument else { continue };
            let inside = self.source(&closure.body);
            if let Some(source) = &receiver {
                closure.inputs.iter().for_each(|input| self.taint_pattern(input, source));
            } else if let Some(source) = inside {
                self.carried(call, closure, &source);
            }
        }
    }

    /// Results of a closure for one element may come back with the next.
    fn carried(&mut self, call: &ExprMethodCall, closure: &ExprClosure, source: &str) {
        if super::loops::parameter(&call.method, closure).is_none() {
            closure.inputs.iter().for_each(|input| self.taint_pattern(input, source));
        } else if closure.inputs.len() > 1 {
            self.taint_pattern(&closure.inputs[0], source);
        }
    }
}

impl<'a> Visit<'a> for Spread<'_> {
    fn visit_local(&mut self, local: &'a Local) {
        visit::visit_local(self, local);
        self.declare(&local.pat);
        if let Some(init) = &local.init
            && let Some(source) = self.source(&init.expr)
        {
            self.taint_pattern(&local.pat, &source);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::If(branch) => {
                self.visit_expr(&branch.cond);
                let source = self.source(&branch.cond);
                self.under(source, |spread| {
                    spread.visit_block(&branch.then_branch);
                    if let Some((_, other)) = &branch.else_branch {
                        spread.visit_expr(other);
                    }
                });
            }
            Expr::Match(choice) => {
                self.visit_expr(&choice.expr);
                let of = self.source(&choice.expr);
                for arm in &choice.arms {
                    let (pattern, guard) = guarded(arm);
                    if let Some(source) = &of {
                        self.taint_pattern(pattern, source);
                    }
                    let guard = guard.and_then(|guard| self.source(guard));
                    self.under(of.clone().or(guard), |spread| visit::visit_arm(spread, arm));
                }
            }
            Expr::Let(condition) => {
                visit::visit_expr(self, expr);
                if let Some(source) = self.source(&condition.expr) {
                    self.taint_pattern(&condition.pat, &source);
                }
            }
            Expr::ForLoop(inner) => {
                self.visit_expr(&inner.expr);
                let source = self.source(&inner.expr);
                if let Some(source) = &source {
                    self.taint_pattern(&inner.pat, source);
                }
                self.in_loop(inner.label.as_ref(), source, |spread| spread.visit_block(&inner.body));
            }
            Expr::While(inner) => {
                let source = self.source(&inner.cond);
                self.in_loop(inner.label.as_ref(), source, |spread| {
                    spread.visit_expr(&inner.cond);
                    spread.visit_block(&inner.body);
                });
            }
            Expr::Loop(inner) => {
                self.in_loop(inner.label.as_ref(), None, |spread| spread.visit_block(&inner.body));
            }
            Expr::Break(leave) => {
                self.jump(leave.label.as_ref());
                visit::visit_expr(self, expr);
            }
            Expr::Continue(next) => self.jump(next.label.as_ref()),
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.visit_expr(&binary.left);
                let source = self.source(&binary.left);
                self.under(source, |spread| spread.visit_expr(&binary.right));
            }
            Expr::Assign(assign) => {
                visit::visit_expr(self, expr);
                let mut roots = Vec::new();
                assigned(&assign.left, &mut roots);
                let by = self.source(&assign.right).or_else(|| self.source(&assign.left));
                self.change(roots, by);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                visit::visit_expr(self, expr);
                let by = self.source(&binary.right);
                self.change(root(&binary.left).into_iter().collect(), by);
            }
            Expr::MethodCall(call) => {
                self.closures(call);
                visit::visit_expr(self, expr);
                // Taint of single elements does not spread to the collection that they are taken out of.
                let matters =
                    |argument: &&Expr| !matches!(argument, Expr::Closure(_)) || !exhausts(&call.method);
                let by = call.args.iter().filter(matters).find_map(|argument| self.source(argument));
                let changed = self.mutable.changed_by(expr);
                self.change(changed, by);
            }
            Expr::Call(call) => {
                visit::visit_expr(self, expr);
                let by = self.source(&call.args);
                let changed = self.mutable.changed_by(expr);
                self.change(changed, by);
            }
            other => visit::visit_expr(self, other),
        }
    }
}
