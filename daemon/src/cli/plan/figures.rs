//! Times and rates as arguments.

/// A figure that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FigureError {
    #[error("{0:?} is not a time: expected a number with ns, us, ms or s, such as 50us")]
    Time(String),
    #[error("{0:?} is not a rate: expected a positive number with kbit, Mbit or Gbit, such as 10Gbit")]
    Rate(String),
}

fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 =
        text[..end].trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    let unit = units.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(&text[end..]))?;
    Some(number * unit.1)
}

/// A time, in nanoseconds.
pub(super) fn latency(text: &str) -> Result<f64, FigureError> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    with_unit(text, &units).ok_or_else(|| FigureError::Time(text.into()))
}

/// Bits a second, as bytes in a nanosecond.
pub(super) fn bandwidth(text: &str) -> Result<f64, FigureError> {
    let units = [("kbit", 1e3 / 8e9), ("mbit", 1e6 / 8e9), ("gbit", 1.0 / 8.0)];
    with_unit(text, &units).filter(|rate| *rate > 0.0).ok_or_else(|| FigureError::Rate(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units() {
        assert_eq!((latency("50us"), latency("1.5 ms"), latency("0ns")), (Ok(50e3), Ok(1.5e6), Ok(0.0)));
        assert_eq!((bandwidth("10Gbit"), bandwidth("8Mbit")), (Ok(1.25), Ok(1e-3)));
        for wrong in ["", "5", "us", "-1us", "5 parsecs", "infs", "1us2"] {
            assert_eq!(latency(wrong), Err(FigureError::Time(wrong.into())));
        }
        for wrong in ["0Gbit", "10", "10GB", "nanGbit"] {
            assert_eq!(bandwidth(wrong), Err(FigureError::Rate(wrong.into())));
        }
    }
}
