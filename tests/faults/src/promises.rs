//! The judge of what the workers of the load saw: promises A to G of the fault list. F, which is about replicas of several
//! hosts, is judged by `across`.
use crate::content::Head;
use hectare_dsm::Version;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

/// The reports of a worker of the load, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// It began: its life and the area that it means to own.
    Begun { life: u64, area: u64 },
    /// It owns an area under an epoch.
    Owns { area: u64, epoch: u64, life: u64 },
    /// The worker of life `by` saw a version that it had not seen before; `epoch` and `life` are what the
    /// version says of its owner.
    Saw { by: u64, area: u64, version: Version, epoch: u64, life: u64 },
    /// It read something that no owner wrote.
    Torn(String),
    /// An error that it did not expect.
    Failed(String),
    /// The job has ended for it, since a host has failed, which it names.
    Ended(String),
    /// The answer to an order.
    Answer(String),
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Begun { life, area } => write!(f, "B {life} {area}"),
            Record::Owns { area, epoch, life } => write!(f, "O {area} {epoch} {life}"),
            Record::Saw { by, area, version: Version { term, counter }, epoch, life } => {
                write!(f, "S {by} {area} {term} {counter} {epoch} {life}")
            }
            Record::Torn(what) => write!(f, "T {what}"),
            Record::Failed(what) => write!(f, "F {what}"),
            Record::Ended(what) => write!(f, "E {what}"),
            Record::Answer(what) => write!(f, "A {what}"),
        }
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(line: &str) -> Result<Record, String> {
        let (kind, rest) = line.split_once(' ').ok_or_else(|| format!("no record: {line:?}"))?;
        let numbers = || -> Result<Vec<u64>, String> {
            let each = rest.split(' ').map(|part| part.parse().map_err(|_| format!("no record: {line:?}")));
            each.collect()
        };
        match (kind, numbers().as_deref()) {
            ("B", Ok(&[life, area])) => Ok(Record::Begun { life, area }),
            ("O", Ok(&[area, epoch, life])) => Ok(Record::Owns { area, epoch, life }),
            ("S", Ok(&[by, area, term, counter, epoch, life])) => {
                Ok(Record::Saw { by, area, version: Version { term, counter }, epoch, life })
            }
            ("T", _) => Ok(Record::Torn(rest.into())),
            ("F", _) => Ok(Record::Failed(rest.into())),
            ("E", _) => Ok(Record::Ended(rest.into())),
            ("A", _) => Ok(Record::Answer(rest.into())),
            _ => Err(format!("no record: {line:?}")),
        }
    }
}

/// The promises by their letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub(crate) enum Promise {
    /// The visible bytes of a version are the owner's bytes of that version.
    A,
    /// Versions never go back.
    B,
    /// One owner per epoch.
    C,
    /// The survivors go on within twice the time-out.
    D,
    /// No panic; descriptors and shared memory return to where they were.
    E,
    /// After a heal, replicas are byte-identical in time.
    F,
    /// A counter with a name shows that it happened.
    G,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Violation {
    pub(crate) promise: Promise,
    pub(crate) what: String,
}

impl Violation {
    pub(crate) fn new(promise: Promise, what: impl Into<String>) -> Violation {
        Violation { promise, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "promise {:?} is broken: {}", self.promise, self.what)
    }
}

impl std::error::Error for Violation {}

/// Versions of an area whose writers are remembered; witnesses are never so far apart.
const REMEMBERED: usize = 10_000;

/// Hears every record of every worker and keeps what broke a promise.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// Who owns an area under an epoch.
    owners: HashMap<(u64, u64), u64>,
    /// Who wrote which of the latest versions of an area: epoch and life.
    writers: HashMap<u64, BTreeMap<Version, (u64, u64)>>,
    /// The last version of an area that a witness saw.
    last: HashMap<(u64, u64), Version>,
    /// Versions that were seen.
    pub(crate) seen: u64,
    pub(crate) violations: Vec<Violation>,
}

impl Judge {
    fn broken(&mut self, promise: Promise, what: String) {
        // The first few say it; a load that goes wrong says the same thousands of times.
        if self.violations.len() < 20 {
            self.violations.push(Violation { promise, what });
        }
    }

    fn owner(&mut self, area: u64, epoch: u64, life: u64) {
        let known = *self.owners.entry((area, epoch)).or_insert(life);
        if known != life {
            self.broken(
                Promise::C,
                format!("epoch {epoch} of area {area} had two owners, {known:#x} and {life:#x}"),
            );
        }
    }

    /// Judges one record.
    pub(crate) fn hear(&mut self, record: &Record) {
        match record {
            Record::Owns { area, epoch, life } => self.owner(*area, *epoch, *life),
            Record::Torn(what) => self.broken(Promise::A, what.clone()),
            Record::Failed(what) => self.broken(Promise::E, format!("an error: {what}")),
            Record::Saw { by, area, version, epoch, life } => {
                self.seen += 1;
                self.owner(*area, *epoch, *life);
                let writers = self.writers.entry(*area).or_default();
                let writer = *writers.entry(*version).or_insert((*epoch, *life));
                if writers.len() > REMEMBERED {
                    writers.pop_first();
                }
                if writer != (*epoch, *life) {
                    let what = format!("version {version} of area {area} was shown with two owners' bytes");
                    self.broken(Promise::A, what);
                }
                let last = self.last.insert((*by, *area), *version).unwrap_or_default();
                if *version < last {
                    let what = format!("area {area} went from {last} to {version} before {by:#x}");
                    self.broken(Promise::B, what);
                }
            }
            Record::Begun { .. } | Record::Ended(_) | Record::Answer(_) => {}
        }
    }
}

impl Record {
    pub(crate) fn of(by: u64, area: u64, version: Version, head: Head) -> Record {
        Record::Saw { by, area, version, epoch: head.epoch, life: head.life }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(by: u64, counter: u64, epoch: u64, life: u64) -> Record {
        Record::Saw { by, area: 1, version: Version { term: 1, counter }, epoch, life }
    }

    #[test]
    fn records_are_read_as_written() {
        let records = [
            Record::Begun { life: 7, area: 1 },
            Record::Owns { area: 1, epoch: 3, life: 7 },
            saw(1, 4, 3, 7),
            Record::Torn("element 3 is wrong".into()),
            Record::Failed("no".into()),
            Record::Ended("host 1 failed".into()),
            Record::Answer("12 of 13".into()),
        ];
        for record in records {
            assert_eq!(record.to_string().parse(), Ok(record));
        }
        for line in ["", "S", "S 1 2", "S 1 2 3 4 5 x", "Q 1"] {
            assert!(line.parse::<Record>().is_err(), "{line:?}");
        }
    }

    #[test]
    fn each_promise_is_judged() {
        let broken = |records: &[Record]| {
            let mut judge = Judge::default();
            records.iter().for_each(|record| judge.hear(record));
            judge.violations.iter().map(|violation| violation.promise).collect::<Vec<_>>()
        };
        assert_eq!(broken(&[saw(1, 4, 3, 7), saw(2, 4, 3, 7), saw(1, 5, 3, 7)]), []);
        assert_eq!(broken(&[saw(1, 4, 3, 7), saw(2, 3, 3, 7)]), [], "another witness may be behind");
        assert_eq!(broken(&[saw(1, 4, 3, 7), saw(1, 3, 3, 7)]), [Promise::B]);
        assert_eq!(broken(&[saw(1, 4, 3, 7), saw(1, 5, 3, 8)]), [Promise::C]);
        assert_eq!(broken(&[saw(1, 4, 3, 7), saw(2, 4, 4, 8)]), [Promise::A]);
        let owns = Record::Owns { area: 1, epoch: 3, life: 9 };
        assert_eq!(broken(&[saw(1, 4, 3, 7), owns]), [Promise::C]);
        assert_eq!(broken(&[Record::Torn("x".into())]), [Promise::A]);
    }
}
