//! Arguments that are more than a number or a name.
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An argument that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    #[error("{0:?} is not FIRST..END")]
    Range(String),
    #[error("{0:?} ends before it begins")]
    EmptyRange(String),
    #[error("{0:?} is not TERM.COUNTER or COUNTER")]
    Version(String),
    #[error("{0:?} is not a number of seconds from 0 to {MOST_SECONDS}")]
    Seconds(String),
    #[error("within 0 seconds nobody can answer")]
    NoTime,
    #[error("an interval must be 0.05 to 3600 seconds")]
    Interval,
}

/// `FIRST..END`, either of which may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: Option<usize>,
    end: Option<usize>,
}

impl Range {
    /// The range in something of `len` elements; what reaches beyond is left as it is.
    pub(super) fn within(self, len: usize) -> std::ops::Range<usize> {
        self.first.unwrap_or(0)..self.end.unwrap_or(len)
    }
}

impl FromStr for Range {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Range, ArgumentError> {
        let wrong = || ArgumentError::Range(text.into());
        let (first, end) = text.split_once("..").ok_or_else(wrong)?;
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse::<usize>().map(Some).map_err(|_| wrong()),
        };
        let (first, end) = (number(first)?, number(end)?);
        match (first, end) {
            (Some(first), Some(end)) if first > end => Err(ArgumentError::EmptyRange(text.into())),
            _ => Ok(Range { first, end }),
        }
    }
}

/// `TERM.COUNTER`, or a counter of whatever term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VersionArgument {
    term: Option<u64>,
    counter: u64,
}

impl VersionArgument {
    /// Whether a version is this one.
    pub(super) fn is(self, term: u64, counter: u64) -> bool {
        self.term.is_none_or(|wanted| wanted == term) && self.counter == counter
    }

    /// Whether a version is this one or a later one.
    pub(super) fn is_reached(self, term: u64, counter: u64) -> bool {
        (term, counter) >= (self.term.unwrap_or(term), self.counter)
    }
}

impl FromStr for VersionArgument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<VersionArgument, ArgumentError> {
        let number = |text: &str| text.parse::<u64>().ok();
        let parsed = match text.split_once('.') {
            Some((term, counter)) => {
                number(term).zip(number(counter)).map(|(term, counter)| (Some(term), counter))
            }
            None => number(text).map(|counter| (None, counter)),
        };
        let wrong = || ArgumentError::Version(text.into());
        parsed.map(|(term, counter)| VersionArgument { term, counter }).ok_or_else(wrong)
    }
}

impl fmt::Display for VersionArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.term {
            Some(term) => write!(f, "{term}.{}", self.counter),
            None => write!(f, "{}", self.counter),
        }
    }
}

/// The longest time that can be asked for, some thirty years: it can be added to any time.
pub(super) const MOST_SECONDS: u32 = 1_000_000_000;

/// Seconds, as a number with or without a point.
pub(super) fn seconds(text: &str) -> Result<Duration, ArgumentError> {
    let number = text.parse::<f64>().ok().filter(|value| *value <= f64::from(MOST_SECONDS));
    let parsed = number.and_then(|value| Duration::try_from_secs_f64(value).ok());
    parsed.ok_or_else(|| ArgumentError::Seconds(text.into()))
}

/// The same, but not none.
pub(super) fn some_seconds(text: &str) -> Result<Duration, ArgumentError> {
    seconds(text).and_then(|time| if time.is_zero() { Err(ArgumentError::NoTime) } else { Ok(time) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_versions_are_read() {
        let range = |text: &str| text.parse::<Range>().map(|range| range.within(10));
        assert_eq!(range("2..5"), Ok(2..5));
        assert_eq!((range("..5"), range("3.."), range("..")), (Ok(0..5), Ok(3..10), Ok(0..10)));
        assert!(range("5..2").is_err() && range("5").is_err() && range("a..b").is_err());
        let version = |text: &str| text.parse::<VersionArgument>();
        let two = version("1.2").unwrap();
        assert!(two.is(1, 2) && !two.is(0, 2) && two.is_reached(2, 0) && !two.is_reached(0, 9));
        let any = version("2").unwrap();
        assert!(any.is(7, 2) && any.is_reached(3, 5) && !any.is_reached(3, 1));
        assert!(version("1.").is_err() && version("x").is_err());
        assert_eq!(two.to_string(), "1.2");
        assert!(seconds("-1").is_err() && seconds("0.5").is_ok() && seconds("0").is_ok());
        assert!(seconds("1e18").is_err() && seconds("inf").is_err() && seconds("nan").is_err());
        assert!(some_seconds("0").is_err() && some_seconds("0.1").is_ok());
    }
}
