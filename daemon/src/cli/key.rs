//! `hectare key`: the key that the hosts of a cluster share.
use super::failure::WrongUsage;
use super::output::print;
use crate::config::Config;
use crate::key_file::{self, KeyFileError};
use anyhow::{Context, Result};
use clap::Subcommand;
use std::path::PathBuf;

/// Commands on keys.
#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Creates a key. Never overwrites one. Copy the file to every host of the cluster: anyone who has it can join any
    /// job there.
    New {
        /// The file. Default: `hectare/cluster.key` in the user's configuration directory, where `hectared` finds it.
        file: Option<PathBuf>,
        /// The name of the cluster.
        #[arg(long, default_value = "hectare")]
        cluster: String,
    },
    /// Whether a file is a key that this user may use, of which cluster, and its fingerprint, which is the same on all hosts
    /// that have this key.
    Check {
        /// The file. Default: the one that the configuration names.
        file: Option<PathBuf>,
    },
}

pub(super) fn key(what: Key) -> Result<()> {
    match what {
        Key::New { file, cluster } => {
            let path = match file {
                Some(file) => file,
                None => {
                    let directory = crate::config::user_directory()
                        .context("neither XDG_CONFIG_HOME nor HOME says where to put the key: name a file")?;
                    std::fs::create_dir_all(&directory)
                        .with_context(|| format!("{} cannot be made", directory.display()))?;
                    directory.join("cluster.key")
                }
            };
            let key = key_file::make(&path, &cluster).map_err(|error| match error {
                KeyFileError::Name(_) => WrongUsage::new(format!(
                    "--cluster {cluster:?}: the name of a cluster has 1 to 64 letters, digits, `-`, `_` or `.`"
                ))
                .into(),
                error => anyhow::Error::from(error),
            })?;
            said(&path, &key)
        }
        Key::Check { file } => {
            let path = match file {
                Some(file) => file,
                None => {
                    let config =
                        Config::load(None).map_err(|error| super::BadConfig(format!("{error:#}")))?;
                    config.key_path()
                }
            };
            said(&path, &key_file::load(&path)?)
        }
    }
}

fn said(path: &std::path::Path, key: &hectare_session::ClusterKey) -> Result<()> {
    print(
        format!("{}: cluster {}, fingerprint {}\n", path.display(), key.cluster(), key.fingerprint())
            .as_bytes(),
    )
}
