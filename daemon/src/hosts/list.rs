//! Lists of hosts: `a:2,b:2` on a command line, and the host files of MPI.
use std::net::IpAddr;

/// A host, and how many ranks it has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, or its address if it was named by that.
    pub name: String,
    /// The address at which the other hosts reach it, where the list has one.
    pub address: Option<IpAddr>,
    /// How many ranks it has room for.
    pub slots: u32,
}

/// The fault in a list, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ListError {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// The fault, in words.
    pub what: String,
}

/// A part of a line and where it begins.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Part<'a> {
    fn wrong<T>(self, what: impl Into<String>) -> Result<T, ListError> {
        Err(ListError { line: self.line, column: self.column, what: what.into() })
    }

    /// The part behind the first `bytes` bytes.
    fn from(self, bytes: usize) -> Part<'a> {
        let (before, text) = self.text.split_at(bytes);
        Part { text, column: self.column + before.chars().count(), ..self }
    }

    fn to(self, bytes: usize) -> Part<'a> {
        Part { text: &self.text[..bytes], ..self }
    }

    /// The parts before and behind a separator.
    fn split(self, at: usize) -> (Part<'a>, Part<'a>) {
        (self.to(at), self.from(at + 1))
    }

    /// The parts between separators; an empty one where two of them meet.
    fn pieces(self, separator: impl Fn(char) -> bool) -> impl Iterator<Item = Part<'a>> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let all = rest?;
            match all.text.find(&separator) {
                Some(at) => {
                    let (piece, behind) = all.split(at);
                    rest = Some(behind);
                    Some(piece)
                }
                None => rest.take(),
            }
        })
    }

    fn trim(self) -> Part<'a> {
        let start = self.text.len() - self.text.trim_start().len();
        let part = self.from(start);
        part.to(part.text.trim_end().len())
    }

    fn slots(self) -> Result<u32, ListError> {
        match self.text.parse() {
            Ok(0) => self.wrong("a host with room for no rank"),
            Ok(slots) if self.text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(slots),
            _ => self.wrong(format!("{:?} is not a number of ranks", self.text)),
        }
    }

    fn address(self) -> Result<IpAddr, ListError> {
        let bare = self.text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(self.text);
        bare.parse().or_else(|_| self.wrong(format!("{:?} is not an IP address", self.text)))
    }

    /// `NAME`, `NAME@ADDRESS`, `NAME:SLOTS`, `NAME@ADDRESS:SLOTS`, where a name may be an address, and an address of IPv6 stands
    /// in brackets. The slots, if there are any.
    fn host(self) -> Result<(Host, Option<u32>), ListError> {
        // The colons of an address are in its brackets.
        let behind = self.text.rfind(']').map_or(0, |at| at + 1);
        let colon = self.text[behind..].find(':').map(|at| behind + at);
        let (host, slots) = match colon.map(|at| self.split(at)) {
            Some((host, slots)) => (host, Some(slots.slots()?)),
            None => (self, None),
        };
        let (name, address) = match host.text.find('@').map(|at| host.split(at)) {
            Some((name, address)) => (name, Some(address.address()?)),
            None => (host, None),
        };
        if name.text.is_empty() {
            return name.wrong("a host without a name");
        }
        let own = match name.text.starts_with('[') {
            true => Some(name.address()?),
            false => name.text.parse().ok(),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if own.is_none() && (name.text.starts_with('-') || !name.text.chars().all(fits)) {
            let odd = if name.text.starts_with('-') { None } else { name.text.find(|c| !fits(c)) };
            let what = format!("{:?} cannot be the name of a host", name.text);
            return name.from(odd.unwrap_or(0)).wrong(what);
        }
        if name.text.len() > 128 {
            return name.wrong("a name of more than 128 bytes");
        }
        let text = own.map_or_else(|| name.text.to_owned(), |address| address.to_string());
        let host = Host { name: text, address: address.or(own), slots: slots.unwrap_or(1) };
        Ok((host, slots))
    }
}

/// Adds a host to a list in which it is not yet, nor its address.
fn add(hosts: &mut Vec<Host>, host: Host, place: Part<'_>) -> Result<(), ListError> {
    if hosts.iter().any(|other| other.name == host.name) {
        return place.wrong(format!("{} is there twice", host.name));
    }
    let same = |other: &&Host| other.address.is_some() && other.address == host.address;
    if let (Some(other), Some(address)) = (hosts.iter().find(same), host.address) {
        return place.wrong(format!("{} and {} have one address, {address}", other.name, host.name));
    }
    hosts.push(host);
    Ok(())
}

/// Reads hosts from one line: `a:2,b@10.0.0.2:2,[fd00::3]`, each with the number of ranks that it has room for, which is one
/// if there is none.
///
/// ```
/// use hectare_daemon::hosts::parse_list;
/// let hosts = parse_list("a:2,b@10.0.0.2")?;
/// assert_eq!((hosts[0].name.as_str(), hosts[0].slots, hosts[1].slots), ("a", 2, 1));
/// assert_eq!(parse_list("a:2,b:x").unwrap_err().column, 7);
/// # Ok::<(), hectare_daemon::hosts::ListError>(())
/// ```
///
/// # Errors
/// [`ListError`]: bad syntax, no hosts, no room, a host or an address that is there twice.
pub fn parse_list(text: &str) -> Result<Vec<Host>, ListError> {
    let mut hosts = Vec::new();
    for piece in (Part { text, line: 1, column: 1 }).pieces(|c| c == ',') {
        let piece = piece.trim();
        let (host, _) = piece.host()?;
        add(&mut hosts, host, piece)?;
    }
    Ok(hosts)
}

/// Reads the host file of MPI: a host in each line, by its name or address, then `slots=N` (Open MPI) or, behind the name,
/// `:N` (MPICH). `max_slots=N` is read, and must not be less. `address=ADDRESS` says where the other hosts reach it. From
/// `#` on, a line is a comment.
///
/// ```
/// use hectare_daemon::hosts::parse_file;
/// let hosts = parse_file("# two of them\na slots=2\nb slots=4 address=10.0.0.2\n")?;
/// assert_eq!(hosts[1].slots, 4);
/// let error = parse_file("a slots=2\nb slot=4\n").unwrap_err();
/// assert_eq!((error.line, error.column), (2, 3));
/// # Ok::<(), hectare_daemon::hosts::ListError>(())
/// ```
///
/// # Errors
/// Those of [`parse_list`].
pub fn parse_file(text: &str) -> Result<Vec<Host>, ListError> {
    let mut hosts = Vec::new();
    let mut last = 1;
    for (line, all) in (1..).zip(text.lines()) {
        last = line;
        let code = all.split('#').next().unwrap_or_default();
        let words = Part { text: code, line, column: 1 }.pieces(char::is_whitespace);
        let mut words = words.filter(|word| !word.text.is_empty());
        let Some(first) = words.next() else { continue };
        let (mut host, mut slots) = first.host()?;
        let mut most = None;
        for word in words {
            let Some((key, value)) = word.text.find('=').map(|at| word.split(at)) else {
                return word.wrong(format!("{:?} is not KEY=VALUE", word.text));
            };
            match key.text {
                "slots" if slots.is_none() => slots = Some(value.slots()?),
                "max_slots" | "max-slots" if most.is_none() => most = Some((value.slots()?, value)),
                "address" if first.text.find('@').is_none() && host.address.is_none() => {
                    host.address = Some(value.address()?);
                }
                "slots" | "max_slots" | "max-slots" | "address" => {
                    return key.wrong(format!("{} is there already", key.text));
                }
                other => return key.wrong(format!("{other:?} is none of slots, max_slots, address")),
            }
        }
        host.slots = slots.unwrap_or(most.map_or(1, |(most, _)| most));
        if let Some((_, value)) = most.filter(|(most, _)| *most < host.slots) {
            return value.wrong(format!("less than the {} slots", host.slots));
        }
        add(&mut hosts, host, first)?;
    }
    if hosts.is_empty() {
        return Err(ListError { line: last, column: 1, what: "no host is in it".into() });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::{Host, parse_file, parse_list};
    use proptest::prelude::*;

    fn host(name: &str, address: Option<&str>, slots: u32) -> Host {
        Host { name: name.into(), address: address.map(|text| text.parse().unwrap()), slots }
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("a"), Ok(vec![host("a", None, 1)]));
        let list = "a:2, node-1.lab:16,10.0.0.3:4,b@10.0.0.2:2,[fd00::1]:3,c@[fd00::2],fd00::4";
        let hosts = vec![
            host("a", None, 2),
            host("node-1.lab", None, 16),
            host("10.0.0.3", Some("10.0.0.3"), 4),
            host("b", Some("10.0.0.2"), 2),
            host("fd00::1", Some("fd00::1"), 3),
            host("c", Some("fd00::2"), 1),
        ];
        assert_eq!(parse_list(list.rsplit_once(',').unwrap().0), Ok(hosts));
        // Without brackets nobody knows where it ends.
        assert!(parse_list("fd00::4").is_err());
    }

    #[test]
    fn files_are_read() {
        let text = "# hosts\n\na slots=2 # the first\n\t b:3\nc max_slots=4\r\nd slots=1 max-slots=4 address=10.0.0.4\n e";
        let hosts = vec![
            host("a", None, 2),
            host("b", None, 3),
            host("c", None, 4),
            host("d", Some("10.0.0.4"), 1),
            host("e", None, 1),
        ];
        assert_eq!(parse_file(text), Ok(hosts));
    }

    #[test]
    fn faults_have_their_place() {
        for (text, column, part) in [
            ("", 1, "without a name"),
            ("a:2,,b", 5, "without a name"),
            ("a:2,b:", 7, "\"\" is not a number"),
            ("a:0", 3, "no rank"),
            ("a:+2", 3, "\"+2\" is not a number"),
            ("a:99999999999", 3, "not a number"),
            ("a:2:2", 3, "\"2:2\" is not a number"),
            ("a,b$c", 4, "cannot be the name"),
            ("a,-oProxyCommand=x", 3, "cannot be the name"),
            ("a,b@here", 5, "not an IP address"),
            ("a,[fd00::zz]", 3, "not an IP address"),
            ("é", 1, "cannot be the name"),
            ("a:1,b:2, a:3", 10, "a is there twice"),
            ("a@10.0.0.1,b@10.0.0.1", 12, "a and b have one address, 10.0.0.1"),
        ] {
            let error = parse_list(text).unwrap_err();
            assert_eq!((error.line, error.column), (1, column), "{text:?}: {error}");
            assert!(error.what.contains(part), "{text:?}: {error}");
        }
        for (text, line, column, part) in [
            ("", 1, 1, "no host"),
            ("# a\n\n#b", 3, 1, "no host"),
            ("a slots=2\nb slots=0", 2, 9, "no rank"),
            ("a\n  b slots = 2", 2, 5, "\"slots\" is not KEY=VALUE"),
            ("a slots=2 slots=3", 1, 11, "there already"),
            ("a:2 slots=3", 1, 5, "there already"),
            ("a slots=4 max_slots=2", 1, 21, "less than the 4 slots"),
            ("a\nb cpu=2", 2, 3, "none of slots"),
            ("a address=b", 1, 11, "not an IP address"),
            ("a\nb\n a slots=2", 3, 2, "a is there twice"),
            ("a address=10.0.0.1\n10.0.0.1", 2, 1, "have one address"),
        ] {
            let error = parse_file(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
            assert!(error.what.contains(part), "{text:?}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// A list and a file of the same hosts read alike.
        #[test]
        fn both_forms_say_the_same(slots in prop::collection::vec(1u32..5000, 1..40)) {
            let hosts: Vec<Host> = (0..).zip(&slots).map(|(n, slots)| host(&format!("h{n}"), None, *slots)).collect();
            let list: Vec<String> = hosts.iter().map(|host| format!("{}:{}", host.name, host.slots)).collect();
            let file: String = hosts.iter().map(|host| format!("{} slots={}\n", host.name, host.slots)).collect();
            prop_assert_eq!(parse_list(&list.join(",")), Ok(hosts.clone()));
            prop_assert_eq!(parse_file(&file), Ok(hosts));
        }

        /// Any text is a list, or has a fault at a place that exists.
        #[test]
        fn faults_are_within_the_text(text in "[a-c:@,=# \\[\\].\n0-2é-]{0,40}") {
            for error in [parse_list(&text).err(), parse_file(&text).err()].into_iter().flatten() {
                let of_line = text.split('\n').nth(error.line - 1).unwrap_or_default();
                prop_assert!((1..=text.chars().count().max(of_line.chars().count()) + 1).contains(&error.column));
            }
        }
    }
}
