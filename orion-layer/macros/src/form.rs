//! Integer expressions that are affine in the variables of the loop; everything else is unknown.
use proc_macro2::TokenStream;
use quote::quote;

/// The values from outside that the description really uses, by their numbers among those that the scopes have met.
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
    pub(crate) fn number(value: i64) -> Sym {
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

    /// Its value, if it is a number.
    fn as_number(&self) -> Option<i64> {
        let terms = self.0.iter().filter(|(factor, _)| *factor != 0);
        terms
            .map(|(factor, outside)| outside.is_empty().then_some(*factor))
            .try_fold(0i64, |sum, factor| sum.checked_add(factor?))
    }

    /// Code for its value modulo 2^64, in the body.
    fn value(&self, used: &mut Used) -> TokenStream {
        let terms = self.0.iter().filter(|(factor, _)| *factor != 0).map(|(factor, outside)| {
            let places = outside.iter().map(|number| used.place(*number) + 1);
            quote!(.wrapping_add(#factor #(.wrapping_mul(__invariants[#places].value.unwrap_or(0)))*))
        });
        quote!(0i64 #(#terms)*)
    }

    /// The values from outside in it.
    fn outside(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter(|(factor, _)| *factor != 0).flat_map(|(_, outside)| outside.iter().copied())
    }

    /// Code for its value: a slice of products.
    fn code(&self, used: &mut Used) -> TokenStream {
        let terms = self.0.iter().filter(|(factor, _)| *factor != 0).map(|(factor, outside)| {
            let places = outside.iter().map(|number| used.place(*number));
            quote!((#factor, &[#(__invariants[#places].value),*][..]))
        });
        quote!(&[#(#terms),*][..])
    }
}

/// The known width of the integer type of an expression. Arithmetic in 64 bits comes out as an index or ends in an
/// index that no array has; in fewer bits it may wrap around to another index.
#[derive(Clone, Copy)]
enum Width {
    /// It has 64 bits.
    Wide,
    /// It is that of a literal, or of the value from outside of this number, and nothing was computed in it.
    Lone(Option<usize>),
    /// The same, and something was computed in it.
    Computed(Option<usize>),
}

impl Width {
    /// The operands of an operator have one type.
    fn with(self, other: Width) -> Width {
        use Width::*;
        match (self, other) {
            (Wide, _) | (_, Wide) => Wide,
            (Lone(a) | Computed(a), Lone(b) | Computed(b)) => Computed(a.or(b)),
        }
    }
}

/// An affine form over the variables of the loop: dimensions and inner variables, by number.
#[derive(Clone)]
pub(crate) struct Form {
    constant: Sym,
    factors: Vec<(usize, Sym)>,
    width: Width,
    /// Values from outside whose types must have 64 bits, or else the form does not hold.
    wide: Vec<usize>,
}

impl Form {
    /// A variable of a dimension.
    pub(crate) fn variable(number: usize) -> Form {
        let factors = vec![(number, Sym::number(1))];
        Form { constant: Sym::default(), factors, width: Width::Wide, wide: Vec::new() }
    }

    /// The variable of an inner loop, which has the type of the loop's bounds.
    pub(crate) fn inner(number: usize, bounds: [Option<&Form>; 2]) -> Form {
        let mut width = Width::Lone(None);
        for bound in bounds.into_iter().flatten() {
            width = match (width, bound.width) {
                (Width::Wide, _) | (_, Width::Wide) => Width::Wide,
                (Width::Lone(known), Width::Lone(of) | Width::Computed(of)) => Width::Lone(known.or(of)),
                (width, _) => width,
            };
        }
        Form { width, ..Form::variable(number) }
    }

    pub(crate) fn number(value: i64, is_wide: bool) -> Form {
        let width = if is_wide { Width::Wide } else { Width::Lone(None) };
        Form { constant: Sym::number(value), factors: Vec::new(), width, wide: Vec::new() }
    }

    pub(crate) fn invariant(number: usize) -> Form {
        let constant = Sym(vec![(1, vec![number])]);
        Form { constant, factors: Vec::new(), width: Width::Lone(Some(number)), wide: Vec::new() }
    }

    /// The form in 64 bits; `None` if its value may have wrapped around before.
    pub(crate) fn widened(mut self) -> Option<Form> {
        match self.width {
            Width::Wide | Width::Lone(_) => {}
            Width::Computed(Some(number)) => self.wide.push(number),
            Width::Computed(None) => return None,
        }
        self.width = Width::Wide;
        Some(self)
    }

    /// The form, if its value cannot have wrapped around; its type stays.
    pub(crate) fn unwrapped(mut self) -> Form {
        if let Width::Computed(Some(number)) = self.width {
            self.wide.push(number);
        }
        self
    }

    pub(crate) fn plus_number(mut self, value: i64) -> Form {
        self.constant.0.push((value, Vec::new()));
        self
    }

    pub(crate) fn plus(mut self, other: Form) -> Form {
        self.constant = self.constant.plus(other.constant);
        self.factors.extend(other.factors);
        self.width = self.width.with(other.width);
        self.wide.extend(other.wide);
        self
    }

    /// Times a form without variables, `factor`, whose value is `sym`.
    pub(crate) fn times(&self, sym: &Sym, factor: &Form) -> Option<Form> {
        let mut form = self.scaled(sym)?;
        form.width = self.width.with(factor.width);
        form.wide.extend(&factor.wide);
        Some(form)
    }

    pub(crate) fn scaled(&self, factor: &Sym) -> Option<Form> {
        let mut factors = Vec::new();
        for (number, sym) in &self.factors {
            factors.push((*number, sym.times(factor)?));
        }
        let constant = self.constant.times(factor)?;
        Some(Form { constant, factors, width: self.width, wide: self.wide.clone() })
    }

    pub(crate) fn negated(&self) -> Option<Form> {
        let mut form = self.scaled(&Sym::number(-1))?;
        form.width = form.width.with(form.width);
        Some(form)
    }

    /// Its value, if no variable occurs in it.
    pub(crate) fn as_sym(&self) -> Option<&Sym> {
        self.factors.iter().all(|(_, factor)| factor.is_zero()).then_some(&self.constant)
    }

    /// From one iteration to the next of the innermost of `dims` dimensions, if that is a number, and no variable of an inner loop occurs.
    pub(crate) fn step(&self, dims: usize) -> Option<i64> {
        let mut step = 0i64;
        for (number, factor) in self.factors.iter().filter(|(_, factor)| !factor.is_zero()) {
            match number + 1 {
                ahead if ahead < dims => {}
                ahead if ahead == dims => step = step.checked_add(factor.as_number()?)?,
                _ => return None,
            }
        }
        Some(step)
    }

    /// Code for its value modulo 2^64, in the body, where the variables of the dimensions are these.
    pub(crate) fn value(&self, variables: &[TokenStream], used: &mut Used) -> TokenStream {
        let constant = self.constant.value(used);
        let terms = self.factors.iter().filter(|(_, factor)| !factor.is_zero()).map(|(number, factor)| {
            let (variable, factor) = (&variables[*number], factor.value(used));
            quote!(.wrapping_add(#variable.wrapping_mul(#factor)))
        });
        quote!((#constant) #(#terms)*)
    }

    /// Code for what has to hold of values from outside, or else its value is another.
    pub(crate) fn conditions(&self, used: &mut Used) -> Vec<TokenStream> {
        let all = std::iter::once(&self.constant).chain(self.factors.iter().map(|(_, factor)| factor));
        let integers: Vec<usize> = all.flat_map(Sym::outside).map(|number| used.place(number) + 1).collect();
        let wide: Vec<usize> = self.wide.iter().map(|number| used.place(*number) + 1).collect();
        let integers = integers.into_iter().map(|place| quote!(__invariants[#place].value.is_some()));
        integers.chain(wide.into_iter().map(|place| quote!(__invariants[#place].is_wide))).collect()
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
        let wide = self.wide.iter().map(|number| {
            let place = used.place(*number);
            quote!(__invariants[#place].is_wide)
        });
        quote!(#root::describe::affine(#constant, &[#(#factors),*], &[#(#wide),*]))
    }
}
