//! Checks of the head and the body of a loop together.
use super::super::accumulators::is;
use super::super::clauses::Input;
use syn::{Error, Result};

pub(super) fn check(input: &Input) -> Result<()> {
    check_space(input)?;
    check_names(input)
}

fn check_space(input: &Input) -> Result<()> {
    match input.arrays.iter().find(|array| array.written && is(&input.body.expr, &array.name)) {
        Some(array) => Err(Error::new(
            array.name.span(),
            format!(
                "the loop runs over the entries of `{0}`, which stay as they are: write to another array, or make a new \
                 one by `{0}.map(..)`",
                array.name
            ),
        )),
        None => Ok(()),
    }
}

/// Every declared name must mean one thing wherever it is used.
fn check_names(input: &Input) -> Result<()> {
    let arrays = input.arrays.iter().map(|array| &array.name);
    let mut names = arrays.chain(input.accumulators.iter().map(|accumulator| &accumulator.name));
    match names.find(|name| input.ambiguous.contains(&name.to_string())) {
        Some(name) => Err(Error::new(
            name.span(),
            format!(
                "another `{name}` comes from another macro, and which is meant where cannot be told: give one of them \
                 another name"
            ),
        )),
        None => Ok(()),
    }
}
