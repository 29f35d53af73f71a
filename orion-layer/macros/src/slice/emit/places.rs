//! Places in written arrays: elements that are read or changed, rows and slices.
use super::super::super::clauses::Array;
use super::super::super::rewrite::{is_in_written, is_pure};
use super::super::super::walk::is_assignment;
use super::Emitter;
use super::children::children;
use syn::{Expr, ExprIndex, ExprMethodCall, PointerMutability, Stmt, parse_quote};

impl Emitter<'_> {
    /// An expression without control flow of its own, which is a place that is changed, if `changes`.
    pub(super) fn place(&mut self, expr: &Expr, changes: bool, out: &mut Vec<Stmt>) {
        match expr {
            Expr::Index(index) => match self.served(&index.expr) {
                Some(array) => self.element(array, index, changes, out),
                None => {
                    self.place(&index.expr, changes, out);
                    self.expr(&index.index, out);
                }
            },
            Expr::Field(field) => self.place(&field.base, changes, out),
            Expr::Paren(inner) => self.place(&inner.expr, changes, out),
            Expr::Group(inner) => self.place(&inner.expr, changes, out),
            Expr::Assign(assign) => {
                self.expr(&assign.right, out);
                self.place(&assign.left, true, out);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                self.expr(&binary.right, out);
                self.place(&binary.left, true, out);
            }
            Expr::Reference(reference) => {
                self.place(&reference.expr, changes || reference.mutability.is_some(), out);
            }
            Expr::RawAddr(address) => {
                let is_mutable = matches!(address.mutability, PointerMutability::Mut(_));
                self.place(&address.expr, changes || is_mutable, out);
            }
            // A pattern that is assigned to.
            Expr::Tuple(_) | Expr::Array(_) | Expr::Call(_) | Expr::Struct(_) if changes => {
                children(expr).into_iter().for_each(|part| self.place(part, true, out));
            }
            Expr::MethodCall(call) => self.method(call, out),
            _ if changes => self.expr(expr, out),
            other => children(other).into_iter().for_each(|child| self.expr(child, out)),
        }
    }

    /// The receiver of a method: an element, if it is one, may be changed.
    pub(super) fn receiver(&mut self, call: &ExprMethodCall, out: &mut Vec<Stmt>) {
        let changes = !is_pure(&call.method) && is_in_written(&self.input.arrays, &call.receiver);
        match changes {
            true => self.place(&call.receiver, true, out),
            false => self.expr(&call.receiver, out),
        }
    }

    fn element(&mut self, array: &Array, index: &ExprIndex, changes: bool, out: &mut Vec<Stmt>) {
        self.expr(&index.index, out);
        let (name, key) = (&array.name, &index.index);
        if self.is_known(array, key) {
            out.push(match changes {
                true => parse_quote!(#name.element_mut(#key);),
                false => parse_quote!(#name.element(#key);),
            });
        }
    }

    /// Rows and slices of a written array.
    pub(super) fn rows(&mut self, array: &Array, call: &ExprMethodCall, out: &mut Vec<Stmt>) {
        let name = &array.name;
        call.args.iter().for_each(|argument| self.expr(argument, out));
        if !call.args.iter().all(|key| self.is_known(array, key)) {
            return;
        }
        let method = &call.method;
        match (method.to_string().as_str(), call.args.first(), call.args.get(1)) {
            ("rows_mut", Some(first), Some(second)) => {
                out.push(parse_quote!(#name.row_mut(#first);));
                out.push(parse_quote!(#name.row_mut(#second);));
            }
            ("row_and_row_mut", Some(first), Some(second)) => {
                out.push(parse_quote!(#name.row(#first);));
                out.push(parse_quote!(#name.row_mut(#second);));
            }
            (_, Some(key), _) => out.push(parse_quote!(#name.#method(#key);)),
            _ => {}
        }
    }

    /// Notes a key; whether it is known before the body runs.
    fn is_known(&mut self, array: &Array, key: &Expr) -> bool {
        if let Some(because) = self.because(key) {
            let name = &array.name;
            self.error(key, format!("a subscript of `{name}` depends on {because}, which the loop changes"));
            return false;
        }
        self.need(key);
        self.substance += 1;
        true
    }
}
