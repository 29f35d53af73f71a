//! Counts and names of types in sentences.

/// `1 clock`, `2 clocks`; `1 pass`, `2 passes`; `1 batch`, `2 batches`; `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let (stem, end) = match what.strip_suffix('y') {
        _ if count == 1 => (what, ""),
        Some(stem) if !what.ends_with("ey") => (stem, "ies"),
        _ if what.ends_with(['s', 'h']) => (what, "es"),
        _ => (what, "s"),
    };
    format!("{count} {stem}{end}")
}

/// A time: in milliseconds, or in microseconds if it is too short for those.
pub(crate) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        short if short < 1e4 => format!("{:.2} us", short / 1e3),
        long => format!("{:.3} ms", long / 1e6),
    }
}

/// The name of a type without the paths in it.
pub(crate) fn short_name(type_name: &str) -> String {
    let mut name = String::new();
    for (number, piece) in type_name.split("::").enumerate() {
        if number > 0 && piece.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            // The text before is the name of a module.
            let kept = name.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
            name.truncate(kept);
        } else if number > 0 {
            name.push_str("::");
        }
        name.push_str(piece);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{counted, short_name, time};

    #[test]
    fn short_times_are_not_zero() {
        assert_eq!([30.0, 1_530.0, 12_345_678.0].map(time), ["0.03 us", "1.53 us", "12.346 ms"]);
    }

    #[test]
    fn one_and_more() {
        let words = ["clock", "pass", "entry", "key", "batch"];
        let one = ["1 clock", "1 pass", "1 entry", "1 key", "1 batch"];
        let two = ["2 clocks", "2 passes", "2 entries", "2 keys", "2 batches"];
        assert_eq!(words.map(|word| counted(1, word)), one);
        assert_eq!(words.map(|word| counted(2, word)), two);
        assert_eq!(counted(0, "clock"), "0 clocks");
    }

    #[test]
    fn names_of_rules_lose_their_paths() {
        let short = short_name;
        assert_eq!(short("hectare_orion::relax::apply::Sum"), "Sum");
        assert_eq!(short("a::Both<b::c::Left, d::Right>"), "Both<Left, Right>");
        assert_eq!(short("a::main::{{closure}}::{{closure}}"), "main::{{closure}}::{{closure}}");
        assert_eq!(short("Sum"), "Sum");
    }
}
