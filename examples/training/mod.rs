//! Shared by the training examples: the command line, data, text, loss curves.
#![allow(dead_code, unused_imports)] // each example uses its own part
#[allow(unreachable_pub, reason = "the documents are drawn with it, too")]
mod chart;
mod curve;
mod data;
pub(crate) mod factors;
mod instructions;
#[allow(unreachable_pub, reason = "matrix completion has it, too")]
mod interrupt;
mod once;
mod options;
mod picture;
mod run;
mod said;
mod same_files;
mod say;
mod seen;
pub(crate) mod text;

pub(crate) use self::curve::{Baseline, Curve};
pub(crate) use self::data::{guess_of_entries, load, mean_guess, parallel, uniform};
pub(crate) use self::instructions::Instructions;
pub(crate) use self::once::{alone, at_root};
pub(crate) use self::options::{Blocks, Options, Steps};
pub(crate) use self::run::{Interrupted, Run, try_to_write};
pub(crate) use self::said::one_line;
pub(crate) use self::same_files::same_files;
pub(crate) use self::say::{say, warn};
use hectare::orion::{Context, Result};

/// Advice for when a loss of gradient descent is not finite any more.
pub(crate) const TOO_LONG: &str = "steps were too long; try a smaller --rate";

/// Says how each loop runs and why, and where the time of relaxed loops went, if the command line asks. Collective.
pub(crate) fn explain(w: &mut Context<'_>, run: &Run) -> Result<()> {
    if run.explain {
        let reports = w.reports()?;
        w.root(|| say(format_args!("{}", w.explain())));
        w.root(|| reports.iter().for_each(|report| say(format_args!("{report}"))));
    }
    Ok(())
}

/// An error of a program's own, for all workers.
pub(crate) fn invalid(error: anyhow::Error) -> hectare::orion::Error {
    hectare::orion::Error::Invalid(one_line(&error))
}

/// Ends a program: an error is one line, and so is an interrupt.
pub(crate) fn exit(result: anyhow::Result<()>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => {
            warn(format_args!("{error}"));
            interrupt::CODE.into()
        }
        Err(error) => {
            warn(format_args!("error: {}", one_line(&error)));
            std::process::ExitCode::FAILURE
        }
    }
}
