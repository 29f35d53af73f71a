//! The text format of Prometheus, version 0.0.4.
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// Metrics on their way into text: samples of one name together, whatever order they came in.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    families: BTreeMap<String, (Kind, String, String)>,
}

impl Exposition {
    /// Adds a sample.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        let fresh = || (kind, help.to_owned(), String::new());
        let (.., samples) = self.families.entry(name.into()).or_insert_with(fresh);
        samples.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            samples.push(if index == 0 { '{' } else { ',' });
            samples.push_str(label);
            samples.push_str("=\"");
            escape(samples, text);
            samples.push('"');
        }
        if !labels.is_empty() {
            samples.push('}');
        }
        // Writing to a string does not fail.
        let _ = writeln!(samples, " {value}");
    }

    /// The whole as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (name, (kind, help, samples)) in &self.families {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }
}

/// Label values may hold anything; these three characters are written as two.
fn escape(into: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => into.push_str("\\\\"),
            '"' => into.push_str("\\\""),
            '\n' => into.push_str("\\n"),
            c => into.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_name_are_together_and_labels_are_escaped() {
        let mut out = Exposition::default();
        out.add(Kind::Counter, "b_total", "B.", &[("area", "x\"\\\ny")], 3);
        out.add(Kind::Gauge, "a_seconds", "A.", &[], 0.5);
        out.add(Kind::Counter, "b_total", "B.", &[("job", "j"), ("area", "z")], 4);
        let expected = "# HELP a_seconds A.\n# TYPE a_seconds gauge\na_seconds 0.5\n\
                        # HELP b_total B.\n# TYPE b_total counter\n\
                        b_total{area=\"x\\\"\\\\\\ny\"} 3\nb_total{job=\"j\",area=\"z\"} 4\n";
        assert_eq!(out.text(), expected);
    }
}
