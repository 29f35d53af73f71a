//! Which process of a program this is: what a launcher says in the environment.

/// The place of this process among those that a launcher started for one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The job that they share.
    pub job: String,
    /// Which of them this is.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
}

/// Why the variables of a launcher cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// `HECTARE_JOB` is set, but nothing says which process this is.
    #[error(
        "HECTARE_JOB is set, but neither HECTARE_RANK and HECTARE_SIZE nor the variables of SLURM, Open MPI, PMI \
         or torchrun say which process this is: start it by `hectare run`, or unset HECTARE_JOB"
    )]
    NoRank,
    /// A variable has no number.
    #[error("{name}={value} is not a number")]
    NotANumber {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
    /// A variable is missing beside another.
    #[error("{name} is not set, though {beside} is")]
    Missing {
        /// The variable that is missing.
        name: String,
        /// The variable that is there.
        beside: String,
    },
    /// The rank is not one of the program's.
    #[error("rank {rank} is not below the number of processes, {size}")]
    OutOfRange {
        /// The rank.
        rank: u32,
        /// The number of processes.
        size: u32,
    },
    /// The launcher started processes on several hosts.
    #[error("{name} says that {here} of {size} processes are on this host: a job is on one host")]
    ManyHosts {
        /// The variable.
        name: String,
        /// Processes of this host.
        here: u32,
        /// All processes.
        size: u32,
    },
}

/// The variables of rank and size of each launcher, and of the number of processes on this host where there
/// is one. The first whose rank is set counts.
const LAUNCHERS: [(&str, &str, Option<&str>); 5] = [
    ("HECTARE_RANK", "HECTARE_SIZE", None),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", Some("OMPI_COMM_WORLD_LOCAL_SIZE")),
    ("PMI_RANK", "PMI_SIZE", None),
    ("RANK", "WORLD_SIZE", Some("LOCAL_WORLD_SIZE")),
    ("SLURM_PROCID", "SLURM_NTASKS", None),
];

impl Launch {
    /// What the environment of this process says; `None` if it was not started as one of several. Only a
    /// process with `HECTARE_JOB` in its environment can be: then its rank and the number of processes come
    /// from `HECTARE_RANK` and `HECTARE_SIZE`, which `hectare run` sets, or from the variables of Open MPI,
    /// PMI, torchrun or SLURM, in this order.
    ///
    /// # Errors
    /// [`LaunchError`] for variables that are missing, contradict each other, or span several hosts.
    pub fn from_environment() -> Result<Option<Launch>, LaunchError> {
        Launch::from_variables(|name| std::env::var(name).ok())
    }

    /// The same for other variables than those of this process.
    ///
    /// ```
    /// use hectare_wire::Launch;
    /// let slurm = |name: &str| match name {
    ///     "HECTARE_JOB" => Some("mf".to_owned()),
    ///     "SLURM_PROCID" => Some("1".to_owned()),
    ///     "SLURM_NTASKS" => Some("4".to_owned()),
    ///     _ => None,
    /// };
    /// let launch = Launch::from_variables(slurm)?.expect("HECTARE_JOB is there");
    /// assert_eq!((launch.rank, launch.size), (1, 4));
    /// # Ok::<(), hectare_wire::LaunchError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Launch::from_environment`].
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Launch>, LaunchError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let Some(job) = variable("HECTARE_JOB") else { return Ok(None) };
        let number = |name: &str| match variable(name) {
            Some(value) => {
                let wrong = |_| LaunchError::NotANumber { name: name.into(), value: value.clone() };
                value.parse::<u32>().map(Some).map_err(wrong)
            }
            None => Ok(None),
        };
        for (rank_name, size_name, here_name) in LAUNCHERS {
            let Some(rank) = number(rank_name)? else { continue };
            let missing = || LaunchError::Missing { name: size_name.into(), beside: rank_name.into() };
            let size = number(size_name)?.ok_or_else(missing)?;
            if rank >= size {
                return Err(LaunchError::OutOfRange { rank, size });
            }
            if let Some(name) = here_name
                && let Some(here) = number(name)?
                && here != size
            {
                return Err(LaunchError::ManyHosts { name: name.into(), here, size });
            }
            return Ok(Some(Launch { job, rank, size }));
        }
        Err(LaunchError::NoRank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Launch>, LaunchError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        Launch::from_variables(find)
    }

    #[test]
    fn each_launcher_is_read() {
        for (rank, size, here) in LAUNCHERS {
            let mut variables = vec![("HECTARE_JOB", "j"), (rank, "2"), (size, "3")];
            variables.extend(here.map(|name| (name, "3")));
            let expected = Launch { job: "j".into(), rank: 2, size: 3 };
            assert_eq!(of(&variables), Ok(Some(expected)), "{rank}");
            // Without a job it is a program of one process.
            assert_eq!(of(&variables[1..]), Ok(None));
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let with = |more: &[(&str, &str)]| of(&[&[("HECTARE_JOB", "j")], more].concat()).unwrap_err();
        assert_eq!(with(&[]), LaunchError::NoRank);
        assert!(with(&[("HECTARE_RANK", "1")]).to_string().contains("HECTARE_SIZE is not set"));
        assert!(with(&[("PMI_RANK", "x")]).to_string().contains("PMI_RANK=x"));
        assert!(matches!(with(&[("RANK", "4"), ("WORLD_SIZE", "4")]), LaunchError::OutOfRange { .. }));
        let hosts = [("RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2")];
        assert!(matches!(with(&hosts), LaunchError::ManyHosts { here: 2, size: 4, .. }));
    }
}
