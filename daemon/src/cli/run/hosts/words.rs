//! A command with places for the name of a host: the remote shell.

/// A template that is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordsError {
    #[error("unterminated quote {0} in {1:?}")]
    Open(char, String),
    #[error("the remote shell command is empty")]
    Empty,
}

/// The words of a command. White space separates them; quotes keep it, and a backslash the next character.
pub(super) fn words(text: &str) -> Result<Vec<String>, WordsError> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        return Err(WordsError::Open(quote, text.into()));
    }
    words.extend(word);
    if words.is_empty() { Err(WordsError::Empty) } else { Ok(words) }
}

/// The words with a host's name in the place of `{host}`; behind them if that is nowhere.
pub(super) fn for_host(words: &[String], host: &str) -> Vec<String> {
    let mut command: Vec<String> = words.iter().map(|word| word.replace("{host}", host)).collect();
    if !words.iter().any(|word| word.contains("{host}")) {
        command.push(host.to_owned());
    }
    command
}

#[cfg(test)]
mod tests {
    use super::{WordsError, for_host, words};

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(words(" ssh  -p 22 ").unwrap(), ["ssh", "-p", "22"]);
        assert_eq!(
            words("ssh -o 'A b' \"c 'd\" e\\ f '' g\"h\"").unwrap(),
            ["ssh", "-o", "A b", "c 'd", "e f", "", "gh"]
        );
        assert_eq!(words("a 'b"), Err(WordsError::Open('\'', "a 'b".into())));
        assert_eq!(words("  "), Err(WordsError::Empty));
    }

    #[test]
    fn a_host_has_its_place() {
        let command = |text: &str| for_host(&words(text).unwrap(), "b");
        assert_eq!(command("ssh -x"), ["ssh", "-x", "b"]);
        assert_eq!(
            command("ip netns exec {host} env D=/run/{host}"),
            ["ip", "netns", "exec", "b", "env", "D=/run/b"]
        );
    }
}
