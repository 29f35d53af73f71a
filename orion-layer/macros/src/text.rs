//! Source text for explanations.
use quote::ToTokens;

/// The text of some source, spaced as people write it.
pub(crate) fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" . ", "."),
        (" :: ", "::"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" ,", ","),
        (" .. ", ".."),
        (" ..", ".."),
        (".. ", ".."),
        ("& mut ", "&mut "),
        ("& ", "&"),
    ] {
        text = text.replace(from, to);
    }
    text
}
