//! Names as the compiler sees them: `r#i` is `i`, and two names of one spelling may be two variables.
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};
use syn::ext::IdentExt;

/// Names of one spelling that come from different macros, and so may mean different variables.
#[derive(Default)]
pub(crate) struct Ambiguous {
    contexts: HashMap<String, String>,
    names: HashSet<String>,
}

impl Ambiguous {
    /// Whether a name does not say which variable it means.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn note(&mut self, name: &Ident) {
        let Some(context) = context(name.span()) else { return };
        let spelling = name.to_string();
        if *self.contexts.entry(spelling.clone()).or_insert_with(|| context.clone()) != context {
            self.names.insert(spelling);
        }
    }
}

/// The expansion that a name belongs to. Stable Rust shows it in the debug text of a span only: `#3 bytes(10..11)`.
fn context(span: Span) -> Option<String> {
    let text = format!("{span:?}");
    let (context, _) = text.split_once(" bytes(")?;
    context.starts_with('#').then(|| context.to_string())
}

/// The same tokens with every raw identifier that need not be raw written plainly; notes all names.
pub(crate) fn plain(tokens: TokenStream, ambiguous: &mut Ambiguous) -> TokenStream {
    let plain_token = |token| match token {
        TokenTree::Ident(name) => {
            let unraw = name.unraw();
            // A keyword stays raw: it is never written otherwise.
            let name = if syn::parse_str::<Ident>(&unraw.to_string()).is_ok() { unraw } else { name };
            ambiguous.note(&name);
            TokenTree::Ident(name)
        }
        TokenTree::Group(group) => {
            let mut inside = Group::new(group.delimiter(), plain(group.stream(), ambiguous));
            inside.set_span(group.span());
            TokenTree::Group(inside)
        }
        other => other,
    };
    tokens.into_iter().map(plain_token).collect()
}
