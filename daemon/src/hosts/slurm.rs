//! SLURM's notation in variables: names of nodes with brackets, and numbers with repetitions.
use hectare_wire::MAX_HOSTS;

/// A value that SLURM would not write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column} of {text:?}: {what}")]
pub struct SlurmError {
    /// The value.
    pub text: String,
    /// The character, from 1.
    pub column: usize,
    /// The fault, in words.
    pub what: String,
}

/// A value on its way through the parser.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, what: impl Into<String>) -> Result<T, SlurmError> {
        let column = self.text[..self.at].chars().count() + 1;
        Err(SlurmError { text: self.text.into(), column, what: what.into() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Goes past a character, if it is the next one.
    fn eat(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, expected: char) -> Result<(), SlurmError> {
        if self.eat(expected) { Ok(()) } else { self.wrong(format!("{expected:?} is missing")) }
    }

    /// The characters that fit, up to the first that does not.
    fn word(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn digits(&mut self) -> Result<(u32, &'a str), SlurmError> {
        let start = self.at;
        let digits = self.word(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) => Ok((number, digits)),
            Err(_) => {
                self.at = start;
                self.wrong("a number is expected")
            }
        }
    }

    /// Numbers and ranges in brackets, each with the zeros before it.
    fn brackets(&mut self) -> Result<Vec<String>, SlurmError> {
        let mut numbers = Vec::new();
        loop {
            let start = self.at;
            let (first, digits) = self.digits()?;
            let last = if self.eat('-') { self.digits()?.0 } else { first };
            if last < first || (last - first) as usize >= MAX_HOSTS {
                self.at = start;
                return self.wrong(match last < first {
                    true => "the range ends before it begins".to_owned(),
                    false => format!("more than {MAX_HOSTS} hosts"),
                });
            }
            let width = digits.len();
            numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
            if numbers.len() > MAX_HOSTS {
                return self.wrong(format!("more than {MAX_HOSTS} hosts"));
            }
            if self.eat(']') {
                return Ok(numbers);
            }
            self.expect(',')?;
        }
    }

    /// The names that one name with brackets means.
    fn names(&mut self) -> Result<Vec<String>, SlurmError> {
        let start = self.at;
        let mut names = vec![String::new()];
        loop {
            let plain = self.word(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            names.iter_mut().for_each(|name| name.push_str(plain));
            if !self.eat('[') {
                break;
            }
            let numbers = self.brackets()?;
            if names.len() * numbers.len() > MAX_HOSTS {
                return self.wrong(format!("more than {MAX_HOSTS} hosts"));
            }
            names = names
                .iter()
                .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
                .collect();
        }
        if self.at == start { self.wrong("a name is expected") } else { Ok(names) }
    }
}

/// The hosts of `SLURM_JOB_NODELIST`: `gpu[01-03,7],login`, also with several pairs of brackets.
///
/// ```
/// use hectare_daemon::hosts::nodes;
/// assert_eq!(nodes("gpu[08-10,3],login")?, ["gpu08", "gpu09", "gpu10", "gpu3", "login"]);
/// assert_eq!(nodes("gpu[1-").unwrap_err().column, 7);
/// # Ok::<(), hectare_daemon::hosts::SlurmError>(())
/// ```
///
/// # Errors
/// [`SlurmError`]: bad syntax, or more hosts than a job may have.
pub fn nodes(text: &str) -> Result<Vec<String>, SlurmError> {
    let mut reader = Reader { text, at: 0 };
    let mut nodes = Vec::new();
    loop {
        nodes.extend(reader.names()?);
        if nodes.len() > MAX_HOSTS {
            return reader.wrong(format!("more than {MAX_HOSTS} hosts"));
        }
        if reader.is_at_end() {
            return Ok(nodes);
        }
        reader.expect(',')?;
    }
}

/// The numbers of `SLURM_TASKS_PER_NODE`: `2(x3),1` are three nodes with 2 tasks and one with 1.
///
/// ```
/// assert_eq!(hectare_daemon::hosts::counts("2(x3),1")?, [2, 2, 2, 1]);
/// # Ok::<(), hectare_daemon::hosts::SlurmError>(())
/// ```
///
/// # Errors
/// [`SlurmError`]: bad syntax, or more nodes than a job may have.
pub fn counts(text: &str) -> Result<Vec<u32>, SlurmError> {
    let mut reader = Reader { text, at: 0 };
    let mut counts = Vec::new();
    loop {
        let (count, _) = reader.digits()?;
        let mut times = 1;
        if reader.eat('(') {
            reader.expect('x')?;
            times = reader.digits()?.0;
            reader.expect(')')?;
        }
        if counts.len() + times as usize > MAX_HOSTS {
            return reader.wrong(format!("more than {MAX_HOSTS} hosts"));
        }
        counts.extend(std::iter::repeat_n(count, times as usize));
        if reader.is_at_end() {
            return Ok(counts);
        }
        reader.expect(',')?;
    }
}

#[cfg(test)]
mod tests {
    use super::{counts, nodes};
    use proptest::prelude::*;

    #[test]
    fn lists_of_nodes_are_read() {
        assert_eq!(nodes("a").unwrap(), ["a"]);
        assert_eq!(nodes("n[1-3]").unwrap(), ["n1", "n2", "n3"]);
        assert_eq!(nodes("n[9-11]").unwrap(), ["n9", "n10", "n11"]);
        assert_eq!(nodes("n[009-011,5].lab").unwrap(), ["n009.lab", "n010.lab", "n011.lab", "n5.lab"]);
        assert_eq!(nodes("r[0-1]n[1-2],x").unwrap(), ["r0n1", "r0n2", "r1n1", "r1n2", "x"]);
    }

    #[test]
    fn counts_are_read() {
        assert_eq!(counts("4").unwrap(), [4]);
        assert_eq!(counts("4(x2),3,1(x1)").unwrap(), [4, 4, 3, 1]);
    }

    #[test]
    fn faults_have_their_place() {
        for (text, column, part) in [
            ("", 1, "a name"),
            ("a,,b", 3, "a name"),
            ("a b", 2, "',' is missing"),
            ("n[1-3", 6, "',' is missing"),
            ("n[]", 3, "a number"),
            ("n[1-]", 5, "a number"),
            ("n[3-1]", 3, "before it begins"),
            ("n[1-99999]", 3, "more than 256 hosts"),
            ("n[99999999999]", 3, "a number"),
            ("r[0-99]n[0-99]", 15, "more than 256 hosts"),
        ] {
            let error = nodes(text).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.what.contains(part), "{error}");
        }
        for (text, column) in [("", 1), ("2(3)", 3), ("2(x3", 5), ("2,", 3), ("x", 1), ("2(x300)", 8)] {
            assert_eq!(counts(text).unwrap_err().column, column, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Ranges mean what their numbers mean one by one.
        #[test]
        fn a_range_is_its_numbers(first in 0u32..2000, more in 0u32..200, width in 1usize..6) {
            let last = first + more;
            let short = nodes(&format!("n[{first:0width$}-{last:0width$}]")).unwrap();
            let numbers: Vec<String> = (first..=last).map(|number| format!("{number:0width$}")).collect();
            prop_assert_eq!(&short, &nodes(&format!("n[{}]", numbers.join(","))).unwrap());
            prop_assert_eq!(short.len() as u32, more + 1);
        }

        /// No value stops the parser, and a fault is within the value or right behind it.
        #[test]
        fn any_value_is_answered(text in "[an0-3,\\[\\]()x-]{0,30}") {
            for error in [nodes(&text).err(), counts(&text).err()].into_iter().flatten() {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.column));
            }
        }
    }
}
