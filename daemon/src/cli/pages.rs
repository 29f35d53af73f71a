//! Manual pages and completions, made from the definitions of the command lines.
use super::exit::{CODES, PASSED_ON};
use super::output::print;
use super::{Options, daemon};
use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::{Path, PathBuf};

/// Completions of the command lines.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
    /// Those of `hectared` instead of those of `hectare`.
    #[arg(long)]
    daemon: bool,
}

/// Manual pages.
#[derive(Debug, Args)]
pub(super) struct ManPages {
    /// Write all pages, of `hectare`, its commands and `hectared`, into this directory, creating it if needed. Without
    /// it, print the page of `hectare`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The command lines of the two programs.
fn commands() -> [Command; 2] {
    [Options::command(), daemon::Options::command()].map(|mut command| {
        command.build();
        command
    })
}

pub(super) fn completions(what: &Completions) -> Result<()> {
    let [hectare, hectared] = commands();
    let mut command = if what.daemon { hectared } else { hectare };
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(what.shell, &mut command, name, &mut text);
    print(&text)
}

pub(super) fn man(what: &ManPages) -> Result<()> {
    let [hectare, hectared] = commands();
    let Some(out) = &what.out else { return print(&page(hectare, "hectare")?) };
    std::fs::create_dir_all(out).with_context(|| format!("{} cannot be made", out.display()))?;
    write_all(out, &hectare, "hectare")?;
    write_all(out, &hectared, "hectared")
}

/// Writes the page of a command, and those of the commands below it.
fn write_all(out: &Path, command: &Command, name: &str) -> Result<()> {
    let file = out.join(format!("{name}.1"));
    std::fs::write(&file, page(command.clone(), name)?)
        .with_context(|| format!("{} cannot be written", file.display()))?;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write_all(out, below, &format!("{name}-{}", below.get_name()))?;
    }
    Ok(())
}

/// The page of a command.
fn page(command: Command, name: &str) -> Result<Vec<u8>> {
    // Its own heading says the exit codes; they need not stand in the text, too.
    let command = command.display_name(name).after_long_help("").after_help("");
    let has_options = command.get_arguments().next().is_some();
    let has_commands = command.has_subcommands();
    let man = Man::new(command);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if has_options {
        man.render_options_section(&mut text)?;
    }
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in CODES {
        roff.control("TP", []);
        roff.text([bold(code.to_string())]);
        roff.text([roman(meaning)]);
    }
    roff.control("PP", []);
    roff.text([roman(PASSED_ON)]);
    roff.control("SH", ["ENVIRONMENT"]);
    for (variable, meaning) in VARIABLES {
        roff.control("TP", []);
        roff.text([bold(variable)]);
        roff.text([roman(meaning)]);
    }
    roff.to_writer(&mut text)?;
    Ok(text)
}

/// The variables that the programs read from the environment.
const VARIABLES: [(&str, &str); 8] = [
    ("HECTARE_RUN_DIR", "The run directory: where a daemon is found, or puts its socket."),
    ("HECTARE_CONFIG", "The configuration of hectared, if --config does not name one."),
    ("HECTARE_KEY_FILE", "The cluster's key, instead of key_file of the configuration."),
    ("HECTARE_MAX_JOBS, HECTARE_MAX_CLIENTS", "Instead of max_jobs and max_clients of the configuration."),
    ("HECTARE_METRICS_LISTEN", "Instead of metrics.listen of the configuration."),
    ("HECTARE_LOG, HECTARE_LOG_FORMAT", "Instead of log.level and log.format of the configuration."),
    (
        "HECTARE_JOB, HECTARE_RANK, HECTARE_SIZE",
        "Set for the processes of `hectare run`: their job, which of them this is, how many there are.",
    ),
    (
        "SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK, RANK",
        "With HECTARE_JOB set, the rank that another launcher gave; the number of processes from its companion.",
    ),
];
