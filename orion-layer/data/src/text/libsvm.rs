//! LIBSVM's format: `label index:value index:value ...` (Chang and Lin, 2011).
use super::{Field, field};
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
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// What is wrong with the line.
#[inline]
pub fn libsvm(line: &str, _offset: usize) -> Result<Option<LabelledRow>, String> {
    row(line, 1)
}

/// [`libsvm`] with indices that begin at `first_index` in the file: some begin at 0.
pub fn libsvm_from(first_index: u32) -> impl Fn(&str, usize) -> Result<Option<LabelledRow>, String> {
    move |line, _offset| row(line, first_index)
}

fn row(line: &str, first_index: u32) -> Result<Option<LabelledRow>, String> {
    let content = line.split_once('#').map_or(line, |(content, _comment)| content);
    let mut columns = content.split_ascii_whitespace();
    let Some(label) = columns.next() else { return Ok(None) };
    let label = f32::parse(label).map_err(|error| format!("label: {error}"))?;
    let count = content.bytes().filter(|&byte| byte == b':').count();
    let mut features: Vec<(u32, f32)> = Vec::with_capacity(count);
    for column in columns {
        let feature = feature(column, first_index)?;
        if let Some(&(last, _)) = features.last().filter(|(last, _)| *last >= feature.0) {
            let (last, index) = (u64::from(last), u64::from(feature.0));
            let first = u64::from(first_index);
            return Err(format!("feature {} comes after feature {}", index + first, last + first));
        }
        features.push(feature);
    }
    Ok(Some(LabelledRow { label, features }))
}

#[inline]
fn feature(column: &str, first_index: u32) -> Result<(u32, f32), String> {
    let colon = column.bytes().position(|byte| byte == b':');
    let Some(colon) = colon else { return Err(format!("expected index:value, found {column:?}")) };
    let (index, value) = (&column[..colon], &column[colon + 1..]);
    if index == "qid" {
        return Err(format!("query ids are not supported, found {column:?}"));
    }
    let number =
        u32::try_from(field::index(index)?).map_err(|_| format!("the index {index} is too large"))?;
    let number = number
        .checked_sub(first_index)
        .ok_or_else(|| format!("features begin at {first_index} here, found {number}"))?;
    Ok((number, f32::parse(value)?))
}
