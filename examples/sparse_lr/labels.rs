//! Labels as files have them: any two, of which the smaller is the negative one.
use hectare::orion::array::text::LineError;
use hectare::orion::{Error, Result};
use std::path::Path;

/// The most different labels that are told apart: more than are shown of a file that has too many.
const MOST: usize = 6;
const SHOWN: usize = MOST - 1;

/// Different labels of a file, up to [`MOST`] of them; places without one are NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found([f32; MOST]);

impl Found {
    pub(crate) const NONE: Found = Found([f32::NAN; MOST]);

    /// The same from and to a plain array, in which workers exchange it.
    pub(crate) fn from_array(labels: [f32; MOST]) -> Found {
        Found(labels)
    }

    pub(crate) fn to_array(self) -> [f32; MOST] {
        self.0
    }

    pub(crate) fn insert(&mut self, label: f32) {
        if let Some(place) = self.0.iter_mut().find(|place| **place == label || place.is_nan()) {
            *place = label;
        }
    }

    pub(crate) fn and(mut self, other: Found) -> Found {
        other.0.into_iter().filter(|label| !label.is_nan()).for_each(|label| self.insert(label));
        self
    }
}

/// The two labels of the examples to learn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Labels {
    pub(crate) negative: f32,
    pub(crate) positive: f32,
}

impl Labels {
    /// Those of generated examples.
    pub(crate) const SIGNS: Labels = Labels { negative: -1.0, positive: 1.0 };

    /// The labels of a file that has `found`.
    pub(crate) fn of(file: &Path, found: Found) -> Result<Labels> {
        let mut found: Vec<f32> = found.0.into_iter().filter(|label| !label.is_nan()).collect();
        found.sort_by(f32::total_cmp);
        let file = file.display();
        match found[..] {
            [negative, positive] => Ok(Labels { negative, positive }),
            [] => Err(Error::Invalid(format!("{file} has no examples to learn from"))),
            [only] => Err(Error::Invalid(format!(
                "{file}: all examples have the label {only}, and a classifier needs two: take a file that has examples of \
                 both classes"
            ))),
            _ => {
                let shown: Vec<String> = found.iter().take(SHOWN).map(f32::to_string).collect();
                let more = if found.len() > SHOWN { " and others" } else { "" };
                Err(Error::Invalid(format!(
                    "{file} has the labels {}{more}, and logistic regression tells two apart: leave examples of two labels in \
                     it, or give one class a label and all others another",
                    shown.join(", ")
                )))
            }
        }
    }

    /// Whether labels of a file tell by their signs what they are, so that they may stay as they are.
    pub(crate) fn are_signs(self) -> bool {
        self.negative <= 0.0 && self.positive > 0.0
    }

    /// -1 for the negative label, 1 for the positive one.
    ///
    /// # Errors
    /// Of another label, which has no meaning.
    pub(crate) fn sign(self, label: f32) -> std::result::Result<f32, LineError> {
        let Labels { negative, positive } = self;
        match label {
            label if label == negative => Ok(-1.0),
            label if label == positive => Ok(1.0),
            _ => Err(LineError::from(format!(
                "the label {label} is none of those learned, which are {negative} and {positive}"
            ))),
        }
    }

    /// Which is which, if that is not plain.
    pub(crate) fn told(self) -> Option<String> {
        let Labels { negative, positive } = self;
        let plain = [[-1.0, 1.0], [0.0, 1.0]].contains(&[negative, positive]);
        (!plain).then(|| format!("label {negative} is the negative one, {positive} the positive one"))
    }
}
