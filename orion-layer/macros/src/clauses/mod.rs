//! The head of a loop: `w, unordered, read [a, b], write u, sum total: f64;`.
mod checks;

use super::advice;
use super::hygiene::Ambiguous;
use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprForLoop, Ident, LitBool, Result, Stmt, Token, Type, bracketed, token};

/// An array of the loop.
pub(crate) struct Array {
    pub(crate) name: Ident,
    /// Where it is, if that is not a variable of its name.
    pub(crate) place: Option<Expr>,
    pub(crate) written: bool,
    pub(crate) treatment: Treatment,
}

/// The treatment of the dependences of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    Kept,
    Relaxed,
    Buffered,
    Served,
}

/// How an accumulator combines.
pub(crate) enum Kind {
    Sum,
    Min,
    Max,
    Fold {
        identity: Box<Expr>,
        combine: Box<Expr>,
    },
    /// As many sums as this says.
    Array {
        len: Box<Expr>,
    },
}

/// An accumulator of the loop.
pub(crate) struct Accumulator {
    pub(crate) name: Ident,
    pub(crate) kind: Kind,
    pub(crate) of: Type,
}

/// All that stands between the macro's parentheses.
pub(crate) struct Input {
    /// The path of the crate that the expansion calls.
    pub(crate) root: TokenStream,
    pub(crate) context: Expr,
    pub(crate) ordered: bool,
    pub(crate) arrays: Vec<Array>,
    pub(crate) accumulators: Vec<Accumulator>,
    pub(crate) schedule: Option<Expr>,
    pub(crate) consistency: Option<Expr>,
    pub(crate) every: Option<Expr>,
    pub(crate) tail: Option<Expr>,
    /// Whether keys of served arrays are found out before.
    pub(crate) prefetch: bool,
    pub(crate) body: ExprForLoop,
    /// Names that may mean several variables.
    pub(crate) ambiguous: Ambiguous,
}

mod words {
    syn::custom_keyword!(ordered);
    syn::custom_keyword!(unordered);
    syn::custom_keyword!(read);
    syn::custom_keyword!(write);
    syn::custom_keyword!(relax);
    syn::custom_keyword!(buffer);
    syn::custom_keyword!(serve);
    syn::custom_keyword!(prefetch);
    syn::custom_keyword!(consistency);
    syn::custom_keyword!(every);
    syn::custom_keyword!(tail);
    syn::custom_keyword!(sum);
    syn::custom_keyword!(min);
    syn::custom_keyword!(max);
    syn::custom_keyword!(fold);
    syn::custom_keyword!(with);
    syn::custom_keyword!(schedule);
}

struct Named {
    name: Ident,
    place: Option<Expr>,
}

impl Parse for Named {
    fn parse(input: ParseStream<'_>) -> Result<Named> {
        let name: Ident = input.parse()?;
        if input.peek(Token![.]) || input.peek(token::Bracket) {
            return Err(advice::unnamed(&name, input));
        }
        let place = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Named { name, place })
    }
}

fn names(input: ParseStream<'_>) -> Result<Vec<Named>> {
    if input.peek(token::Bracket) {
        let list;
        bracketed!(list in input);
        return Ok(Punctuated::<Named, Token![,]>::parse_terminated(&list)?.into_iter().collect());
    }
    Ok(vec![input.parse()?])
}

#[derive(Default)]
struct Head {
    order: Option<(bool, Span)>,
    arrays: Vec<Array>,
    accumulators: Vec<Accumulator>,
    schedule: Option<Expr>,
    consistency: Option<(Expr, Span)>,
    every: Option<(Expr, Span)>,
    tail: Option<(Expr, Span)>,
    prefetch: Option<(bool, Span)>,
}

impl Head {
    fn clause(&mut self, input: ParseStream<'_>) -> Result<()> {
        let look = input.lookahead1();
        if look.peek(words::ordered) {
            let word = input.parse::<words::ordered>()?;
            self.order(true, word.span)
        } else if look.peek(words::unordered) {
            let word = input.parse::<words::unordered>()?;
            self.order(false, word.span)
        } else if look.peek(words::read) {
            input.parse::<words::read>()?;
            self.add(names(input)?, false, Treatment::Kept)
        } else if look.peek(words::write) {
            input.parse::<words::write>()?;
            self.add(names(input)?, true, Treatment::Kept)
        } else if look.peek(words::relax) {
            input.parse::<words::relax>()?;
            self.add(names(input)?, true, Treatment::Relaxed)
        } else if look.peek(words::buffer) {
            input.parse::<words::buffer>()?;
            self.add(names(input)?, true, Treatment::Buffered)
        } else if look.peek(words::serve) {
            input.parse::<words::serve>()?;
            self.add(names(input)?, true, Treatment::Served)
        } else if look.peek(words::prefetch) {
            let span = input.parse::<words::prefetch>()?.span;
            input.parse::<Token![=]>()?;
            if self.prefetch.replace((input.parse::<LitBool>()?.value, span)).is_some() {
                return Err(Error::new(span, "`prefetch` is given twice"));
            }
            Ok(())
        } else if look.peek(words::consistency) {
            let span = input.parse::<words::consistency>()?.span;
            once(input, &mut self.consistency, "consistency", span)
        } else if look.peek(words::every) {
            let span = input.parse::<words::every>()?.span;
            once(input, &mut self.every, "every", span)
        } else if look.peek(words::tail) {
            let span = input.parse::<words::tail>()?.span;
            once(input, &mut self.tail, "tail", span)
        } else if look.peek(words::schedule) {
            let word = input.parse::<words::schedule>()?;
            input.parse::<Token![=]>()?;
            if self.schedule.replace(input.parse()?).is_some() {
                return Err(Error::new(word.span, "a loop has one schedule"));
            }
            Ok(())
        } else if look.peek(words::sum) {
            input.parse::<words::sum>()?;
            self.accumulate(input, Kind::Sum)
        } else if look.peek(words::min) {
            input.parse::<words::min>()?;
            self.accumulate(input, Kind::Min)
        } else if look.peek(words::max) {
            input.parse::<words::max>()?;
            self.accumulate(input, Kind::Max)
        } else if look.peek(words::fold) {
            input.parse::<words::fold>()?;
            let (name, of) = typed(input)?;
            input.parse::<Token![=]>()?;
            let identity = input.parse()?;
            input.parse::<words::with>()?;
            let kind = Kind::Fold { identity, combine: input.parse()? };
            self.accumulators.push(Accumulator { name, kind, of });
            Ok(())
        } else {
            Err(advice::misspelt(input).unwrap_or_else(|| look.error()))
        }
    }

    fn order(&mut self, ordered: bool, span: Span) -> Result<()> {
        if self.order.replace((ordered, span)).is_some() {
            return Err(Error::new(span, "a loop is either `ordered` or `unordered`, given once"));
        }
        Ok(())
    }

    fn add(&mut self, named: Vec<Named>, written: bool, treatment: Treatment) -> Result<()> {
        let array = |Named { name, place }| Array { name, place, written, treatment };
        self.arrays.extend(named.into_iter().map(array));
        Ok(())
    }

    fn accumulate(&mut self, input: ParseStream<'_>, kind: Kind) -> Result<()> {
        let (name, of) = typed(input)?;
        let (kind, of) = match (kind, of) {
            (Kind::Sum, Type::Array(array)) => (Kind::Array { len: Box::new(array.len) }, *array.elem),
            (_, Type::Array(array)) => {
                return Err(Error::new_spanned(array, "only sums may be arrays: `sum name: [f64; n]`"));
            }
            other => other,
        };
        self.accumulators.push(Accumulator { name, kind, of });
        Ok(())
    }
}

/// The value of a clause that is given once.
fn once(input: ParseStream<'_>, value: &mut Option<(Expr, Span)>, word: &str, span: Span) -> Result<()> {
    input.parse::<Token![=]>()?;
    match value.replace((input.parse()?, span)) {
        Some(_) => Err(Error::new(span, format!("`{word}` is given twice"))),
        None => Ok(()),
    }
}

fn typed(input: ParseStream<'_>) -> Result<(Ident, Type)> {
    let name: Ident = input.parse()?;
    if !input.peek(Token![:]) {
        return Err(Error::new(name.span(), format!("an accumulator has a type: write `{name}: f64`")));
    }
    input.parse::<Token![:]>()?;
    Ok((name, input.parse()?))
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> Result<Input> {
        let root;
        bracketed!(root in input);
        let root = root.parse()?;
        let context: Expr = input.parse()?;
        let mut head = Head::default();
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.peek(Token![;]) {
            head.clause(input)?;
        }
        if !input.peek(Token![;]) {
            return Err(advice::between_clauses(input));
        }
        input.parse::<Token![;]>()?;
        head.check_names()?;
        head.check_accumulators()?;
        head.check_relaxed()?;
        let Some((ordered, _)) = head.order else { return Err(advice::without_order(&context)) };
        let body = one_loop(input)?;
        let Head { arrays, accumulators, schedule, consistency, every, tail, prefetch, .. } = head;
        let prefetch = prefetch.is_none_or(|(on, _)| on);
        let [consistency, every, tail] =
            [consistency, every, tail].map(|clause| clause.map(|(expr, _)| expr));
        let ambiguous = Ambiguous::default();
        Ok(Input {
            root,
            context,
            ordered,
            arrays,
            accumulators,
            schedule,
            consistency,
            every,
            tail,
            prefetch,
            body,
            ambiguous,
        })
    }
}

fn one_loop(input: ParseStream<'_>) -> Result<ExprForLoop> {
    let advice = "`parallel_for!` takes one `for` loop after its clauses";
    if input.is_empty() {
        return Err(input.error(advice));
    }
    let stmt: Stmt = input.parse().map_err(|mut error| {
        error.combine(Error::new(error.span(), advice));
        error
    })?;
    let Stmt::Expr(Expr::ForLoop(body), _) = stmt else {
        return Err(Error::new_spanned(stmt, advice));
    };
    if !input.is_empty() {
        return Err(input.error("nothing may follow the loop: `parallel_for!` takes one `for` loop"));
    }
    Ok(body)
}
