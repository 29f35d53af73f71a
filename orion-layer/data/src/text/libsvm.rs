//! LIBSVM's format: `label index:value index:value ...` (Chang and Lin, 2011).
use super::{Field, LineError, field};
use serde::{Deserialize, Serialize};

/// A training example: its label, and the features that are not zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelledRow {
    /// The label, as it is in the file.
    pub label: f32,
    /// Index and value of each feature, indices ascending from 0 on.
    pub features: Vec<(u32, f32)>,
}

/// The parser of LIBSVM's format with indices that begin at 1 in the file, as is usual, and at 0 in the rows.
/// Within a row they ascend. Empty lines and what follows a `#` are passed over; query ids (`qid:`) and several
/// labels are refused.
///
/// ```
/// use hectare_data::text::libsvm;
/// let row = libsvm("-1 3:1 11:0.5", 0)?.expect("a row");
/// assert_eq!(row.label, -1.0);
/// assert_eq!(row.features, [(2, 1.0), (10, 0.5)]);
/// # Ok::<(), hectare_data::text::LineError>(())
/// ```
///
/// # Errors
/// [`LineError`].
#[inline]
pub fn libsvm(line: &str, _offset: usize) -> Result<Option<LabelledRow>, LineError> {
    row(line, 1)
}

/// [`libsvm`] with indices that begin at `first_index` in the file: some begin at 0.
pub fn libsvm_from(first_index: u32) -> impl Fn(&str, usize) -> Result<Option<LabelledRow>, LineError> {
    move |line, _offset| row(line, first_index)
}

fn row(line: &str, first_index: u32) -> Result<Option<LabelledRow>, LineError> {
    let content = line.split_once('#').map_or(line, |(content, _comment)| content);
    let mut columns = content.split_ascii_whitespace();
    let Some(label) = columns.next() else { return Ok(None) };
    let label = f32::parse(label).map_err(|error| LineError::Label { source: Box::new(error) })?;
    let count = content.bytes().filter(|&byte| byte == b':').count();
    let mut features: Vec<(u32, f32)> = Vec::with_capacity(count);
    for column in columns {
        let feature = feature(column, first_index)?;
        if let Some(&(last, _)) = features.last().filter(|(last, _)| *last >= feature.0) {
            let (last, index) = (u64::from(last), u64::from(feature.0));
            let first = u64::from(first_index);
            return Err(LineError::FeatureOrder { feature: index + first, last: last + first });
        }
        features.push(feature);
    }
    Ok(Some(LabelledRow { label, features }))
}

#[inline]
fn feature(column: &str, first_index: u32) -> Result<(u32, f32), LineError> {
    let colon = column.bytes().position(|byte| byte == b':');
    let Some(colon) = colon else { return Err(LineError::NotAFeature { found: column.into() }) };
    let (index, value) = (&column[..colon], &column[colon + 1..]);
    if index == "qid" {
        return Err(LineError::QueryId { found: column.into() });
    }
    let number =
        u32::try_from(field::index(index)?).map_err(|_| LineError::IndexTooLarge { index: index.into() })?;
    let number = number.checked_sub(first_index).ok_or_else(|| LineError::BeforeFirst {
        what: "features",
        first: first_index as usize,
        found: number.to_string(),
    })?;
    Ok((number, f32::parse(value)?))
}
