//! How good the margins of the rows to test with are.
use super::classes::Quality;
use super::loss::Loss;

/// The margin of a row, and its label.
pub(crate) type Scored = [f32; 2];

/// The measures of a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measured {
    Classes(Quality),
    /// The root of the mean of squared errors.
    Error(f64),
}

impl Measured {
    pub(crate) fn of(loss: Loss, scored: &[Scored]) -> Measured {
        match loss {
            Loss::Logistic => Measured::Classes(Quality::of(scored)),
            Loss::Squared => {
                let squares = scored.iter().map(|[margin, label]| f64::from(margin - label).powi(2));
                Measured::Error((squares.sum::<f64>() / scored.len() as f64).sqrt())
            }
        }
    }

    /// The value that the training curve shows.
    pub(crate) fn loss(&self) -> f64 {
        match self {
            Measured::Classes(quality) => quality.loss,
            Measured::Error(error) => *error,
        }
    }

    /// The name of [`Measured::loss`].
    pub(crate) fn name(loss: Loss) -> &'static str {
        match loss {
            Loss::Logistic => "test loss",
            Loss::Squared => "test RMSE",
        }
    }

    /// Other measures, as text.
    pub(crate) fn said(&self) -> Option<String> {
        match self {
            Measured::Classes(quality) => Some(quality.to_string()),
            Measured::Error(_) => None,
        }
    }
}
