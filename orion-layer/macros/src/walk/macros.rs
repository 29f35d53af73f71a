//! Macros in the body: those of the standard library whose arguments are expressions, and all others.
use super::super::nest::mentions;
use super::Walker;
use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Expr, Ident, Lit, Macro, Token};

/// Macros that do with their arguments, which are expressions, what a function would do.
const FOLLOWED: [&str; 24] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "print",
    "println",
    "eprint",
    "eprintln",
    "write",
    "writeln",
    "format",
    "format_args",
    "panic",
    "vec",
    "unreachable",
    "dbg",
    "log",
    "trace",
    "debug",
    "info",
    "warn",
    "error",
];

/// Whether a macro is one of those whose arguments are expressions.
pub(super) fn is_followed(call: &Macro) -> bool {
    let last = call.path.segments.last();
    last.is_some_and(|segment| FOLLOWED.iter().any(|name| segment.ident == name))
}

/// The arguments of a macro, if they are expressions.
pub(crate) fn followed_arguments(call: &Macro) -> Option<Vec<Expr>> {
    let arguments =
        is_followed(call).then(|| call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated));
    Some(arguments?.ok()?.into_iter().collect())
}

impl Walker<'_> {
    pub(super) fn visit_macro_call(&mut self, call: &Macro) {
        let names = self.names();
        if is_followed(call)
            && let Ok(arguments) = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        {
            let outer = std::mem::replace(&mut self.in_macro, true);
            arguments.iter().for_each(|argument| self.visit_expr(argument));
            self.in_macro = outer;
            for argument in &arguments {
                if let Expr::Lit(literal) = argument
                    && let Lit::Str(text) = &literal.lit
                    && let Some(name) = names.iter().find(|name| captures(&text.value(), name))
                {
                    self.error(text, format!("`{name}` belongs to the loop and cannot be formatted itself"));
                }
            }
        } else if mentions(&call.tokens, &names) || texts_capture(call.tokens.clone(), &names) {
            self.error(
                &call.path,
                "what this macro does to the loop's arrays and accumulators cannot be seen: bind what it needs to \
                 variables first",
            );
        }
    }
}

/// Whether a format string shows the variable `name`, or takes a width or precision from it.
fn captures(text: &str, name: &Ident) -> bool {
    let name = name.to_string();
    text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).any(|inside| {
        let (shown, form) = inside.split_once(':').unwrap_or((inside, ""));
        let mut parameters = form
            .split('$')
            .map(|part| part.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""));
        shown.trim() == name || (form.contains('$') && parameters.any(|parameter| parameter.ends_with(&name)))
    })
}

fn texts_capture(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Literal(literal) => match Lit::new(literal) {
            Lit::Str(text) => names.iter().any(|name| captures(&text.value(), name)),
            _ => false,
        },
        TokenTree::Group(group) => texts_capture(group.stream(), names),
        _ => false,
    })
}
