//! Integer expressions that are affine in the variables of the loop; everything else is unknown.
use super::scope::{Binding, Scopes};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{BinOp, Expr, Lit, Type, UnOp};

/// The values from outside that the description really uses, by their numbers in [`Scopes`].
#[derive(Default)]
pub(crate) struct Used(pub(crate) Vec<usize>);

impl Used {
    fn place(&mut self, number: usize) -> usize {
        let known = self.0.iter().position(|known| *known == number);
        known.unwrap_or_else(|| {
            self.0.push(number);
            self.0.len() - 1
        })
    }
}

/// A sum of products of a number and values that do not change in the loop.
#[derive(Clone, Default)]
pub(crate) struct Sym(Vec<(i64, Vec<usize>)>);

impl Sym {
    fn number(value: i64) -> Sym {
        Sym(vec![(value, Vec::new())])
    }

    fn plus(mut self, other: Sym) -> Sym {
        self.0.extend(other.0);
        self
    }

    fn times(&self, other: &Sym) -> Option<Sym> {
        let mut terms = Vec::new();
        for (a, left) in &self.0 {
            for (b, right) in &other.0 {
                terms.push((a.checked_mul(*b)?, left.iter().chain(right).copied().collect()));
            }
        }
        Some(Sym(terms))
    }

    fn is_zero(&self) -> bool {
        self.0.iter().all(|(factor, _)| *factor == 0)
    }

    /// Code for its value: a slice of products.
    fn code(&self, used: &mut Used) -> TokenStream {
        let terms = self.0.iter().filter(|(factor, _)| *factor != 0).map(|(factor, outside)| {
            let places = outside.iter().map(|number| used.place(*number));
            quote!((#factor, &[#(__invariants[#places]),*][..]))
        });
        quote!(&[#(#terms),*][..])
    }
}

/// An affine form over the variables of the loop: dimensions and inner variables, by number.
#[derive(Clone, Default)]
pub(crate) struct Form {
    constant: Sym,
    factors: Vec<(usize, Sym)>,
}

impl Form {
    pub(crate) fn variable(number: usize) -> Form {
        Form { constant: Sym::default(), factors: vec![(number, Sym::number(1))] }
    }

    pub(crate) fn invariant(number: usize) -> Form {
        Form { constant: Sym(vec![(1, vec![number])]), factors: Vec::new() }
    }

    pub(crate) fn plus_number(mut self, value: i64) -> Form {
        self.constant.0.push((value, Vec::new()));
        self
    }

    fn plus(mut self, other: Form) -> Form {
        self.constant = self.constant.plus(other.constant);
        self.factors.extend(other.factors);
        self
    }

    fn times(&self, factor: &Sym) -> Option<Form> {
        let mut factors = Vec::new();
        for (number, sym) in &self.factors {
            factors.push((*number, sym.times(factor)?));
        }
        Some(Form { constant: self.constant.times(factor)?, factors })
    }

    /// Its value, if no variable occurs in it.
    fn as_sym(&self) -> Option<&Sym> {
        self.factors.iter().all(|(_, factor)| factor.is_zero()).then_some(&self.constant)
    }

    /// Code for an `Option<Affine>`.
    pub(crate) fn code(&self, root: &TokenStream, used: &mut Used) -> TokenStream {
        let constant = self.constant.code(used);
        let factors: Vec<TokenStream> = self
            .factors
            .iter()
            .map(|(number, sym)| {
                let code = sym.code(used);
                quote!((#number, #code))
            })
            .collect();
        quote!(#root::describe::affine(#constant, &[#(#factors),*]))
    }
}

/// The value of an expression as a form; `None` if it is none that can be followed.
pub(crate) fn form(expr: &Expr, scopes: &mut Scopes) -> Option<Form> {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(number) => Some(Form::default().plus_number(number.base10_parse().ok()?)),
            _ => None,
        },
        Expr::Paren(inner) => form(&inner.expr, scopes),
        Expr::Group(inner) => form(&inner.expr, scopes),
        // Casts to 64 bits keep every index; narrower ones may not.
        Expr::Cast(cast) => match &*cast.ty {
            Type::Path(path)
                if ["usize", "isize", "u64", "i64"].iter().any(|name| path.path.is_ident(name)) =>
            {
                form(&cast.expr, scopes)
            }
            _ => None,
        },
        Expr::Unary(unary) => match unary.op {
            UnOp::Neg(_) => form(&unary.expr, scopes)?.times(&Sym::number(-1)),
            _ => None,
        },
        Expr::Binary(binary) => {
            let (left, right) = (form(&binary.left, scopes), form(&binary.right, scopes));
            let (left, right) = (left?, right?);
            match binary.op {
                BinOp::Add(_) => Some(left.plus(right)),
                BinOp::Sub(_) => Some(left.plus(right.times(&Sym::number(-1))?)),
                BinOp::Mul(_) => match (left.as_sym(), right.as_sym()) {
                    (_, Some(factor)) => left.times(factor),
                    (Some(factor), None) => right.times(factor),
                    (None, None) => None,
                },
                _ => None,
            }
        }
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => match scopes.find(name) {
                Some(Binding::Form(form)) => Some(form.clone()),
                Some(Binding::Other) => None,
                None => Some(Form::invariant(scopes.outside(expr))),
            },
            // A constant of some module.
            None => Some(Form::invariant(scopes.outside(expr))),
        },
        Expr::Field(_) => scopes.is_outside(expr).then(|| Form::invariant(scopes.outside(expr))),
        _ => None,
    }
}
