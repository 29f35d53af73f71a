//! Advice on what is easily written by mistake.
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, Token};

/// Advice on an array that is named by its place, as in `write m.u`: the rest of it comes next.
pub(crate) fn unnamed(name: &Ident, input: ParseStream<'_>) -> Error {
    let mut place = name.to_string();
    while !input.is_empty() && !input.peek(Token![,]) && !input.peek(Token![;]) {
        match input.parse::<TokenTree>() {
            Ok(token) => place.push_str(&token.to_string()),
            Err(error) => return error,
        }
    }
    let last = place.rsplit('.').next().filter(|last| syn::parse_str::<Ident>(last).is_ok()).unwrap_or("a");
    Error::new(
        name.span(),
        format!("an array needs a name in the loop: write `{last} = {place}`, and use `{last}` in the body"),
    )
}

/// The words that clauses begin with.
const WORDS: [&str; 16] = [
    "ordered",
    "unordered",
    "read",
    "write",
    "relax",
    "buffer",
    "serve",
    "prefetch",
    "consistency",
    "every",
    "tail",
    "schedule",
    "sum",
    "min",
    "max",
    "fold",
];

/// Asks whether another word was meant than the one that stands here.
pub(crate) fn misspelt(input: ParseStream<'_>) -> Option<Error> {
    let found = input.fork().parse::<Ident>().ok()?;
    let spelling = found.to_string();
    let nearest = WORDS.into_iter().min_by_key(|word| distance(&spelling, word))?;
    // Half of another word is no misspelling.
    (distance(&spelling, nearest) <= 2 && 2 * distance(&spelling, nearest) < nearest.len()).then(|| {
        Error::new(found.span(), format!("no clause begins with `{found}`: did you mean `{nearest}`?"))
    })
}

/// Advice on a clause, or a loop, that begins without what ends the clause before it.
pub(crate) fn between_clauses(input: ParseStream<'_>) -> Error {
    input.error(if input.peek(Token![for]) {
        "a `;` stands between the head of the loop and its `for`"
    } else {
        "a `,` stands between two clauses, and a `;` after the last one"
    })
}

/// Advice on a head without an order; the word may stand where the context should.
pub(crate) fn without_order(context: &Expr) -> Error {
    let is = |word: &str| matches!(context, Expr::Path(path) if path.path.is_ident(word));
    let advice = match ["ordered", "unordered"].into_iter().find(|word| is(word)) {
        Some(word) => format!("the context comes first: `parallel_for!(w, {word}, ..)`"),
        None => "add `ordered` (as if iterations ran in the loop's order) or `unordered` (as if in any serial order)".into(),
    };
    Error::new_spanned(context, advice)
}

/// How many letters have to be left out, put in, changed, or exchanged with their neighbours (Damerau, 1964, in the
/// form in which no letter is changed twice).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(x != y)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == &b[j - 1] && &a[i - 1] == y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Advice on the first `a[i, j]`, which is not Rust, among tokens that do not parse.
pub(crate) fn index_list(tokens: TokenStream) -> Option<Error> {
    // In the head, lists follow words.
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(end) if end.as_char() == ';');
    index_list_in(tokens.into_iter().skip_while(|token| !is_end(token)).collect())
}

fn index_list_in(tokens: TokenStream) -> Option<Error> {
    let (mut name, mut follows_name) = (None, false);
    for token in tokens {
        match &token {
            TokenTree::Group(group) => {
                let is_comma =
                    |token: &TokenTree| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',');
                let inside = group.stream();
                if group.delimiter() == Delimiter::Bracket
                    && follows_name
                    && inside.clone().into_iter().any(|token| is_comma(&token))
                {
                    let name = name.map_or_else(|| "a".to_owned(), |name: Ident| name.to_string());
                    let advice = format!("write the indices as an array: `{name}[[{inside}]]`");
                    return Some(Error::new(group.span(), advice));
                }
                let found = index_list_in(inside);
                if found.is_some() {
                    return found;
                }
                follows_name = false;
            }
            // Words of the language are none that is indexed.
            TokenTree::Ident(word) => {
                follows_name = syn::parse2::<Ident>(token.clone().into()).is_ok();
                name = Some(word.clone());
            }
            _ => follows_name = false,
        }
    }
    None
}
