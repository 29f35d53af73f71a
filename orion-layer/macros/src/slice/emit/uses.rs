//! Calls of methods: uses of served arrays, and of iterators whose closures use them.
use super::super::super::clauses::Treatment;
use super::Emitter;
use syn::{Expr, ExprMethodCall, Stmt, parse_quote};

impl Emitter<'_> {
    pub(super) fn method(&mut self, call: &ExprMethodCall, out: &mut Vec<Stmt>) {
        if let Some(array) = self.served(&call.receiver) {
            if self.of == Treatment::Kept {
                return self.rows(array, call, out);
            }
            let (name, key) = (&array.name, &call.args[0]);
            let others = call.args.iter().skip(usize::from(self.taint.is_free(key)));
            let mut after = Vec::new();
            others.for_each(|argument| self.expr(argument, &mut after));
            if let Some(because) = self.because(key) {
                return self.error(
                    key,
                    format!(
                        "this key of `{name}` depends on {because}, which the loop changes: it cannot be fetched \
                         before the body runs. Compute subscripts from what the loop only reads (variables of one name count \
                         as one); or add `prefetch = false`, to look up keys one by one, except for those that `intend` \
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
            out.extend(after);
            return;
        }
        let for_each = |argument: &Expr| matches!(argument, Expr::Closure(closure) if self.mentions_served(&closure.body));
        if !call.args.iter().any(for_each) || !self.taint.is_free(&call.receiver) {
            match self.of {
                Treatment::Kept => self.receiver(call, out),
                _ => self.expr(&call.receiver, out),
            }
        }
        for argument in &call.args {
            match argument {
                Expr::Closure(closure) if self.mentions_served(&closure.body) => {
                    self.each_element(call, closure, out);
                }
                other => self.expr(other, out),
            }
        }
    }
}
