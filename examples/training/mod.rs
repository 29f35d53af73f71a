//! What the training examples share: options, data, text, loss curves.
#![allow(dead_code, unused_imports)] // each example uses its own part
mod curve;
mod data;
mod options;
pub(crate) mod text;

pub(crate) use self::curve::Curve;
pub(crate) use self::data::{load, parallel, uniform};
pub(crate) use self::options::{Options, Steps};
