//! Counts in sentences.

/// `1 clock`, `2 clocks`; `1 pass`, `2 passes`; `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let (stem, end) = match what.strip_suffix('y') {
        _ if count == 1 => (what, ""),
        Some(stem) if !what.ends_with("ey") => (stem, "ies"),
        _ if what.ends_with('s') => (what, "es"),
        _ => (what, "s"),
    };
    format!("{count} {stem}{end}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_and_more() {
        let words = ["clock", "pass", "entry", "key"];
        assert_eq!(words.map(|word| counted(1, word)), ["1 clock", "1 pass", "1 entry", "1 key"]);
        assert_eq!(words.map(|word| counted(2, word)), ["2 clocks", "2 passes", "2 entries", "2 keys"]);
        assert_eq!(counted(0, "clock"), "0 clocks");
    }
}
