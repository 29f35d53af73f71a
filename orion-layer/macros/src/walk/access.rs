//! Accesses to arrays: elements, rows, slices.
use super::super::affine::form;
use super::super::clauses::{Array, Treatment};
use super::super::form::Form;
use super::super::lines::Site;
use super::super::nest::inner_range;
use super::super::rewrite::{is_in_written, is_pure};
use super::super::text::text;
use super::captured::root;
use super::{Mode, Walker};
use crate::accumulators::is;
use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, ExprIndex, ExprMethodCall, UnOp};

/// The subscripts after those that are given.
enum Rest {
    /// Nothing: one for each dimension.
    Exact,
    /// All of the last dimension.
    Row,
}

impl Walker<'_> {
    /// A place, whose value is used as `mode` says.
    pub(super) fn place(&mut self, expr: &Expr, mode: Mode) {
        // A part of an element that is written leaves the other parts as they were.
        let part = if mode == Mode::Write { Mode::Update } else { mode };
        match expr {
            Expr::Index(index) => match self.array_of(&index.expr) {
                Some((_, array)) if array.treatment != Treatment::Kept => {
                    let advice = relaxed_advice(array);
                    self.error(index, advice);
                }
                Some((number, _)) => self.element(number, index, mode),
                None => {
                    self.place(&index.expr, part);
                    self.visit_expr(&index.index);
                }
            },
            Expr::Field(field) => {
                if root(expr).is_none() {
                    return self.place(&field.base, part);
                }
                // The field is noted, and not all of its variable.
                if mode == Mode::Read {
                    self.capture(expr);
                }
                self.unseen(|walker| walker.place(&field.base, part));
            }
            Expr::Paren(inner) => self.place(&inner.expr, mode),
            Expr::Group(inner) => self.place(&inner.expr, mode),
            // A write through a reference that an element holds.
            Expr::Unary(unary)
                if mode != Mode::Read
                    && matches!(unary.op, UnOp::Deref(_))
                    && self.is_in_written(&unary.expr) =>
            {
                self.place(&unary.expr, Mode::Update);
            }
            Expr::Path(path) => {
                let Some(name) = path.path.get_ident() else { return };
                if self.array(name).is_some() {
                    self.error(
                        name,
                        format!(
                            "an array of the loop is used by its elements (`{name}[i]`, `{name}[[i, j]]`), rows \
                             (`{name}.row(i)`, `{name}.row_mut(i)`, `{name}.rows_mut(i, j)`) and slices \
                             (`{name}.slice(a..b)`, `{name}.slice_mut(a..b)`) only: what else is done with it cannot \
                             be seen"
                        ),
                    );
                }
                let accumulators = self.input.accumulators.iter();
                if let Some(accumulator) = accumulators.into_iter().find(|known| is(expr, &known.name)) {
                    self.error(name, accumulator.advice());
                }
                if is(&self.input.context, name) && self.scopes.is_outside(expr) {
                    self.error(
                        name,
                        format!(
                            "the loop itself uses `{name}` while it runs: before it, assign what the body needs to a variable, as in \
                             `let rank = {name}.rank();`"
                        ),
                    );
                }
                match mode {
                    Mode::Read => self.capture(expr),
                    Mode::Write | Mode::Update => self.check_local(name, expr),
                }
            }
            other => self.visit_expr(other),
        }
    }

    /// The left side of an assignment: a place, or several in a pattern.
    pub(super) fn assigned(&mut self, expr: &Expr) {
        match expr {
            Expr::Tuple(parts) => parts.elems.iter().for_each(|part| self.assigned(part)),
            Expr::Array(parts) => parts.elems.iter().for_each(|part| self.assigned(part)),
            Expr::Call(call) => call.args.iter().for_each(|part| self.assigned(part)),
            Expr::Struct(fields) => fields.fields.iter().for_each(|field| self.assigned(&field.expr)),
            Expr::Paren(inner) => self.assigned(&inner.expr),
            Expr::Group(inner) => self.assigned(&inner.expr),
            place => self.place(place, Mode::Write),
        }
    }

    /// `array[index]`.
    fn element(&mut self, number: usize, access: &ExprIndex, mode: Mode) {
        self.visit_expr(&access.index);
        let name = &self.input.arrays[number].name;
        let forms = match &*access.index {
            Expr::Array(list) => {
                let subscripts: Vec<&Expr> = list.elems.iter().collect();
                self.note(number, &subscripts, Rest::Exact, mode, access)
            }
            Expr::Tuple(_) => {
                self.error(&access.index, format!("write the indices as an array: `{name}[[i, j]]`"));
                None
            }
            Expr::Range(_) => {
                self.error(
                    &access.index,
                    format!("for a range of elements, use `{name}.slice(a..b)` or `slice_mut`"),
                );
                None
            }
            single => self.note(number, &[single], Rest::Exact, mode, access),
        };
        let writes = mode != Mode::Read;
        match forms {
            Some(forms) if !self.in_macro => {
                self.sites.push(Site { node: std::ptr::from_ref(access), array: number, forms, writes });
            }
            _ => self.others[number] = true,
        }
    }

    /// A method call: of an array, of an element, of anything.
    pub(super) fn visit_method(&mut self, call: &ExprMethodCall) {
        self.visit_arguments(call);
        if let Some((number, array)) = self.array_of(&call.receiver) {
            self.others[number] = true;
            if array.treatment != Treatment::Kept {
                return self.relaxed_method(number, array, call);
            }
            let name = &array.name;
            let method = call.method.to_string();
            match (method.as_str(), call.args.len()) {
                ("row", 1) => self.row(number, &call.args[0], Mode::Read, call),
                ("row_mut", 1) => self.row(number, &call.args[0], Mode::Update, call),
                ("rows_mut", 2) => {
                    self.row(number, &call.args[0], Mode::Update, call);
                    self.row(number, &call.args[1], Mode::Update, call);
                }
                ("row_and_row_mut", 2) => {
                    self.row(number, &call.args[0], Mode::Read, call);
                    self.row(number, &call.args[1], Mode::Update, call);
                }
                // A lookup in a map.
                ("get" | "at", 1) if !array.written => self.push(number, &[], Rest::Exact, Mode::Read, call),
                ("slice", 1) => self.slice(number, &call.args[0], Mode::Read, call),
                ("slice_mut", 1) => self.slice(number, &call.args[0], Mode::Update, call),
                ("add" | "add_row" | "push", _) => self.error(
                    &call.method,
                    format!(
                        "`{name}` takes no contributions here: name it under `buffer`, if it is a map, a growing list or a \
                         buffered array, or under `relax` or `serve`"
                    ),
                ),
                _ => self.error(
                    &call.method,
                    format!(
                        "what `{method}` does to `{name}` is not known; there are `row(i)`, `row_mut(i)`, \
                         `rows_mut(i, j)`, `row_and_row_mut(i, j)`, `slice(a..b)`, `slice_mut(a..b)` and elements `{name}[i]`, \
                         `{name}[[i, j]]`"
                    ),
                ),
            }
            return;
        }
        // A method of an element of an array that is written may write it.
        let pure = is_pure(&call.method);
        let mode = if pure || !self.is_in_written(&call.receiver) { Mode::Read } else { Mode::Update };
        self.place(&call.receiver, mode);
    }

    /// A method of an array that the loop relaxes or buffers.
    fn relaxed_method(&mut self, number: usize, array: &Array, call: &ExprMethodCall) {
        let method = call.method.to_string();
        let (mode, is_row) = match (array.treatment, method.as_str(), call.args.len()) {
            (_, "get", 1) => (Mode::Read, false),
            (_, "add", 2) => (Mode::Update, false),
            (_, "add_row", 2) => (Mode::Update, true),
            (Treatment::Relaxed, "set", 2) => (Mode::Write, false),
            (Treatment::Relaxed, "row" | "read_row", 2) => (Mode::Read, true),
            (Treatment::Relaxed, "write_row", 2) => (Mode::Write, true),
            (Treatment::Relaxed, "update_row", 3) => (Mode::Update, true),
            (Treatment::Buffered | Treatment::Served, "row", 1) => (Mode::Read, true),
            (Treatment::Buffered, "at", 1) => (Mode::Read, false),
            // An element that is appended has no index yet.
            (Treatment::Buffered, "push", 1) => {
                return self.push(number, &[], Rest::Exact, Mode::Update, call);
            }
            _ => return self.error(&call.method, relaxed_advice(array)),
        };
        match &call.args[0] {
            index if is_row => self.row(number, index, mode, call),
            Expr::Array(list) => {
                let subscripts: Vec<&Expr> = list.elems.iter().collect();
                self.note(number, &subscripts, Rest::Exact, mode, call);
            }
            single => {
                self.note(number, &[single], Rest::Exact, mode, call);
            }
        }
    }

    /// Whether a place is an element, or part of one, of an array that the loop writes.
    fn is_in_written(&self, expr: &Expr) -> bool {
        is_in_written(&self.input.arrays, expr)
    }

    fn row(&mut self, number: usize, index: &Expr, mode: Mode, access: &ExprMethodCall) {
        match index {
            Expr::Array(list) => {
                let subscripts: Vec<&Expr> = list.elems.iter().collect();
                self.note(number, &subscripts, Rest::Row, mode, access);
            }
            single => {
                self.note(number, &[single], Rest::Row, mode, access);
            }
        }
    }

    fn slice(&mut self, number: usize, range: &Expr, mode: Mode, access: &ExprMethodCall) {
        let ends = inner_range(range).filter(|_| matches!(range, Expr::Range(_) | Expr::Paren(_)));
        let Some((start, end, closed)) = ends else {
            return self.error(range, "write a slice as `a..b`, so that its bounds can be analyzed");
        };
        let root = self.root;
        let first = form(start, &mut self.scopes);
        let last = form(end, &mut self.scopes).map(|form| form.plus_number(i64::from(closed)));
        let subscript = match (first, last) {
            (Some(first), Some(last)) => {
                let (first, last) = (first.code(root, &mut self.used), last.code(root, &mut self.used));
                quote!(#root::describe::range(#first, #last))
            }
            _ => {
                self.is_irregular |= self.input.arrays[number].written;
                quote!(#root::describe::anything())
            }
        };
        self.push(number, &[subscript], Rest::Exact, mode, access);
    }

    /// Adds an access to the description; its subscripts, if all can be followed.
    fn note(
        &mut self,
        number: usize,
        subscripts: &[&Expr],
        rest: Rest,
        mode: Mode,
        access: &(impl quote::ToTokens + Spanned),
    ) -> Option<Vec<Form>> {
        let root = self.root;
        let forms: Vec<_> = subscripts.iter().map(|subscript| form(subscript, &mut self.scopes)).collect();
        self.is_irregular |= self.input.arrays[number].written && forms.iter().any(Option::is_none);
        // A single index that is not followed may be an array of indices.
        if let ([None], [single]) = (&forms[..], subscripts)
            && !matches!(single, Expr::Array(_))
        {
            self.push(number, &[], Rest::Exact, mode, access);
            return None;
        }
        let codes: Vec<TokenStream> = forms
            .iter()
            .map(|form| match form {
                Some(form) => {
                    let code = form.code(root, &mut self.used);
                    quote!(#root::describe::index(#code))
                }
                None => quote!(#root::describe::anything()),
            })
            .collect();
        self.push(number, &codes, rest, mode, access);
        forms.into_iter().collect()
    }

    /// Adds an access to the description; no subscripts at all mean anything in every dimension.
    fn push(
        &mut self,
        number: usize,
        subscripts: &[TokenStream],
        rest: Rest,
        mode: Mode,
        access: &(impl quote::ToTokens + Spanned),
    ) {
        let array = &self.input.arrays[number];
        if mode != Mode::Read && !array.written {
            let name = &array.name;
            self.error(
                access,
                format!("the body writes `{name}`, which is named under `read`: name it under `write`"),
            );
            return;
        }
        self.wrote[number] |= mode != Mode::Read;
        self.read[number] |= mode != Mode::Write;
        let (root, source, line) = (self.root, text(access), access.span().start().line as u32);
        let mode = match mode {
            Mode::Read => quote!(Read),
            Mode::Write => quote!(Write),
            Mode::Update => quote!(Update),
        };
        let row = matches!(rest, Rest::Row);
        self.description.push(quote! {
            #root::describe::access(
                __nest, #number, &[#(#subscripts),*], #row, #root::loop_nest::Mode::#mode, #source, #line,
            );
        });
    }
}

/// How an array that the loop relaxes or buffers is used.
fn relaxed_advice(array: &Array) -> String {
    let name = &array.name;
    match array.treatment {
        Treatment::Relaxed => format!(
            "`{name}` is relaxed: others may change it meanwhile, so that elements are copied out and in, by \
             `{name}.get(i)`, `{name}.set(i, x)`, `{name}.add(i, x)`, `{name}.read_row(i, &mut row)`, \
             `{name}.write_row(i, &row)` and `{name}.add_row(i, &row)`; `{name}.row(i, &mut room)` and \
             `{name}.update_row(i, &mut room, |row| ..)` copy only where they have to"
        ),
        Treatment::Served => format!(
            "`{name}` is served: it is read by `{name}.get(i)` and `{name}.row(i)`, and takes contributions by \
             `{name}.add(i, x)` and `{name}.add_row(i, &row)`"
        ),
        _ => format!(
            "`{name}` is buffered: it is read by `{name}.get(i)` and `{name}.row(i)`, and takes contributions by \
             `{name}.add(i, x)` and `{name}.add_row(i, &row)`"
        ),
    }
}
