//! Accesses to elements, and their places in the body.
use crate::form::Form;
use proc_macro2::{Literal, TokenStream};
use std::collections::HashMap;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, ExprIndex, Ident, Item, Macro, parse_quote};

/// An access to an element of a declared array, all of whose subscripts can be followed.
pub(crate) struct Site {
    /// Where it is in the body. Never looked through.
    pub(crate) node: *const ExprIndex,
    pub(crate) array: usize,
    /// One subscript for each dimension.
    pub(crate) forms: Vec<Form>,
    pub(crate) writes: bool,
}

/// The numbers of the body's index expressions, in the order in which [`Replace`] meets them.
pub(super) fn numbers_of(body: &Block) -> HashMap<*const ExprIndex, usize> {
    struct Numbers(HashMap<*const ExprIndex, usize>);
    impl<'a> Visit<'a> for Numbers {
        fn visit_expr_index(&mut self, index: &'a ExprIndex) {
            let number = self.0.len();
            self.0.insert(std::ptr::from_ref(index), number);
            visit::visit_expr_index(self, index);
        }
    }
    let mut numbers = Numbers(HashMap::new());
    numbers.visit_block(body);
    numbers.0
}

/// Whether all accesses of the body can be seen in it: no macro hides one, and nothing is taken away by an attribute.
pub(super) fn sees_all(body: &Block) -> bool {
    struct Hides(bool);
    impl<'a> Visit<'a> for Hides {
        fn visit_macro(&mut self, _: &'a Macro) {
            self.0 = true;
        }

        fn visit_item(&mut self, _: &'a Item) {
            self.0 = true;
        }

        fn visit_attribute(&mut self, _: &'a Attribute) {
            self.0 = true;
        }

        fn visit_expr(&mut self, expr: &'a Expr) {
            self.0 |= matches!(expr, Expr::Verbatim(_));
            visit::visit_expr(self, expr);
        }
    }
    let mut hides = Hides(false);
    hides.visit_block(body);
    !hides.0
}

/// Makes looks into lines of accesses.
pub(super) struct Replace<'a> {
    root: &'a TokenStream,
    /// The variable that counts along a line.
    at: Ident,
    /// The number of the line, by that of the index expression.
    lines: HashMap<usize, usize>,
    next: usize,
}

impl<'a> Replace<'a> {
    pub(super) fn new(root: &'a TokenStream, at: Ident) -> Replace<'a> {
        Replace { root, at, lines: HashMap::new(), next: 0 }
    }

    /// The index expressions with these numbers are the lines of one array.
    pub(super) fn add(&mut self, places: Vec<usize>) {
        self.lines.extend(places.into_iter().enumerate().map(|(line, place)| (place, line)));
    }

    pub(super) fn in_body(mut self, body: &Block) -> Block {
        let mut body = body.clone();
        self.visit_block_mut(&mut body);
        body
    }
}

impl VisitMut for Replace<'_> {
    fn visit_expr_index_mut(&mut self, index: &mut ExprIndex) {
        let number = self.next;
        self.next += 1;
        visit_mut::visit_expr_index_mut(self, index);
        if let Some(line) = self.lines.get(&number) {
            let (root, line, at, subscript) =
                (self.root, Literal::usize_suffixed(*line), &self.at, &index.index);
            // The subscript is never computed, but tells the types of what is in it: a number is an index, and no `i32`.
            *index.index = parse_quote!({
                if false {
                    #root::view::subscript(#subscript);
                }
                (#line, #at)
            });
        }
    }
}
