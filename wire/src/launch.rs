//! The rank of this process, from the environment that a launcher sets.

/// The place of this process among those that a launcher started for one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The name of the job.
    pub job: String,
    /// The rank of this process.
    pub rank: u32,
    /// The number of processes.
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
    /// Hectare's own variables say which process this is, and not of which job.
    #[error(
        "{name} is set, but HECTARE_JOB, the name of the job, is not: start the program by `hectare run`, set HECTARE_JOB, or \
         unset {name} to run alone"
    )]
    NoJob {
        /// The variable that is set.
        name: String,
    },
    /// A variable is not a number.
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
    #[error(
        "{name} says that {here} of {size} processes are on this host: on several hosts, have the launcher start \
         `hectare run --launched -- PROGRAM`"
    )]
    ManyHosts {
        /// The variable.
        name: String,
        /// Processes of this host.
        here: u32,
        /// All processes.
        size: u32,
    },
    /// The launcher started processes on several hosts, and a variable has their number.
    #[error(
        "{name} says that the processes are on {hosts} hosts: on several, have the launcher start \
         `hectare run --launched -- PROGRAM`"
    )]
    Hosts {
        /// The variable.
        name: String,
        /// The hosts.
        hosts: u32,
    },
}

/// The variables of a launcher.
struct Launcher {
    rank: &'static str,
    /// The number of processes: the first of these that is set.
    sizes: &'static [&'static str],
    /// The number of processes on this host, where there is one.
    here: Option<&'static str>,
    /// The number of hosts: the first of these that is set.
    hosts: &'static [&'static str],
}

/// Every launcher; the first whose rank is set counts. SLURM comes last: its variables are also in the
/// environment of what other launchers start inside of its allocations. Those of a step come before those of the
/// allocation, which may have room for more processes than the step starts.
const LAUNCHERS: [Launcher; 5] = [
    Launcher { rank: "HECTARE_RANK", sizes: &["HECTARE_SIZE"], here: None, hosts: &[] },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        here: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
        hosts: &[],
    },
    // MPICH and Intel MPI.
    Launcher { rank: "PMI_RANK", sizes: &["PMI_SIZE"], here: Some("MPI_LOCALNRANKS"), hosts: &[] },
    // torchrun.
    Launcher { rank: "RANK", sizes: &["WORLD_SIZE"], here: Some("LOCAL_WORLD_SIZE"), hosts: &[] },
    Launcher {
        rank: "SLURM_PROCID",
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        here: None,
        hosts: &["SLURM_STEP_NUM_NODES", "SLURM_NNODES"],
    },
];

impl Launch {
    /// The launch that the environment of this process describes; `None` if it was not started as one of several. Only a
    /// process with `HECTARE_JOB` in its environment can be: then its rank and the number of processes come
    /// from `HECTARE_RANK` and `HECTARE_SIZE`, which `hectare run` sets, or from the variables of Open MPI,
    /// PMI, torchrun or SLURM, in this order.
    ///
    /// # Errors
    /// [`LaunchError`] for variables that are missing, contradict each other, or span several hosts; [`LaunchError::NoJob`] if
    /// `HECTARE_RANK` or `HECTARE_SIZE` is there without `HECTARE_JOB`.
    pub fn from_environment() -> Result<Option<Launch>, LaunchError> {
        Launch::from_variables(|name| std::env::var(name).ok())
    }

    /// The same from given variables instead of the environment.
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
        let Some(job) = variable("HECTARE_JOB") else {
            // Other launchers' variables are also in the environment of programs that run alone.
            let own = ["HECTARE_RANK", "HECTARE_SIZE"].into_iter().find(|name| variable(name).is_some());
            return own.map_or(Ok(None), |name| Err(LaunchError::NoJob { name: name.into() }));
        };
        let number = |name: &str| match variable(name) {
            Some(value) => {
                let wrong = |_| LaunchError::NotANumber { name: name.into(), value: value.clone() };
                value.parse::<u32>().map(Some).map_err(wrong)
            }
            None => Ok(None),
        };
        let first = |names: &[&'static str]| {
            let set =
                names.iter().find_map(|name| number(name).map(|value| value.map(|v| (*name, v))).transpose());
            set.transpose()
        };
        for launcher in LAUNCHERS {
            let Some(rank) = number(launcher.rank)? else { continue };
            let missing = || {
                let name = launcher.sizes[launcher.sizes.len() - 1].into();
                LaunchError::Missing { name, beside: launcher.rank.into() }
            };
            let (_, size) = first(launcher.sizes)?.ok_or_else(missing)?;
            if rank >= size {
                return Err(LaunchError::OutOfRange { rank, size });
            }
            if let Some(name) = launcher.here
                && let Some(here) = number(name)?
                && here != size
            {
                return Err(LaunchError::ManyHosts { name: name.into(), here, size });
            }
            if let Some((name, hosts)) = first(launcher.hosts)?
                && hosts > 1
            {
                return Err(LaunchError::Hosts { name: name.into(), hosts });
            }
            return Ok(Some(Launch { job, rank, size }));
        }
        Err(LaunchError::NoRank)
    }
}

/// A process that a launcher started as one of several, each of which runs a whole program, as none of them is told of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// The variable with the number of processes.
    pub name: String,
    /// The number of processes.
    pub size: u32,
}

impl std::fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LeftAlone { name, size } = self;
        write!(
            f,
            "{name} says that this is one of {size} processes, and each runs alone, since HECTARE_JOB is not set: have the \
             launcher start `hectare run --launched -- PROGRAM`"
        )
    }
}

impl LeftAlone {
    /// Whether this process is such a one. Nothing is wrong with that; it is seldom meant. Of SLURM, a job step counts, and not the
    /// allocation, in which programs run alone as well.
    pub fn from_environment() -> Option<LeftAlone> {
        LeftAlone::from_variables(|name| std::env::var(name).ok())
    }

    /// The same from given variables instead of the environment.
    ///
    /// ```
    /// use hectare_wire::LeftAlone;
    /// let mpi = |name: &str| match name {
    ///     "OMPI_COMM_WORLD_RANK" => Some("1".to_owned()),
    ///     "OMPI_COMM_WORLD_SIZE" => Some("4".to_owned()),
    ///     _ => None,
    /// };
    /// assert_eq!(LeftAlone::from_variables(mpi).map(|alone| alone.size), Some(4));
    /// ```
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<LeftAlone> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let Launcher { sizes, .. } =
            LAUNCHERS.into_iter().find(|launcher| variable(launcher.rank).is_some())?;
        let size = variable(sizes[0])?.parse().ok().filter(|size| *size > 1)?;
        variable("HECTARE_JOB").is_none().then(|| LeftAlone { name: sizes[0].into(), size })
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
        for Launcher { rank, sizes, here, hosts } in LAUNCHERS {
            for &size in sizes {
                let mut variables = vec![("HECTARE_JOB", "j"), (rank, "2"), (size, "3")];
                variables.extend(here.map(|name| (name, "3")));
                variables.extend(hosts.iter().map(|name| (*name, "1")));
                let expected = Launch { job: "j".into(), rank: 2, size: 3 };
                assert_eq!(of(&variables), Ok(Some(expected)), "{rank}");
                // Without a job it is a program of one process.
                if rank != "HECTARE_RANK" {
                    assert_eq!(of(&variables[1..]), Ok(None));
                }
            }
        }
    }

    #[test]
    fn a_launcher_inside_of_an_allocation_counts_and_a_step_is_less_than_an_allocation() {
        let batch =
            [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8"), ("SLURM_NNODES", "1"), ("HECTARE_JOB", "j")];
        let place = |more: &[(&str, &str)]| of(&[&batch[..], more].concat()).unwrap().unwrap();
        assert_eq!(place(&[]).size, 8);
        assert_eq!(place(&[("SLURM_STEP_NUM_TASKS", "4")]).size, 4);
        let torch = place(&[("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_WORLD_SIZE", "2")]);
        assert_eq!((torch.rank, torch.size), (1, 2));
    }

    #[test]
    fn who_is_left_alone_is_one_of_several_without_a_job() {
        let of = |variables: &[(&str, &str)]| {
            let find =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
            LeftAlone::from_variables(find)
        };
        for Launcher { rank, sizes, .. } in LAUNCHERS {
            let alone = LeftAlone { name: sizes[0].into(), size: 3 };
            assert_eq!(of(&[(rank, "2"), (sizes[0], "3")]), Some(alone));
            assert_eq!(of(&[(rank, "2"), (sizes[0], "3"), ("HECTARE_JOB", "j")]), None);
            assert_eq!(of(&[(rank, "0"), (sizes[0], "1")]), None);
            assert_eq!(of(&[(sizes[0], "3")]), None, "not one of them itself");
        }
        // In an allocation, and no step.
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let with = |more: &[(&str, &str)]| of(&[&[("HECTARE_JOB", "j")], more].concat()).unwrap_err();
        assert_eq!(with(&[]), LaunchError::NoRank);
        assert!(with(&[("HECTARE_RANK", "1")]).to_string().contains("HECTARE_SIZE is not set"));
        for own in ["HECTARE_RANK", "HECTARE_SIZE"] {
            let alone = of(&[(own, "1")]).unwrap_err();
            assert_eq!(alone, LaunchError::NoJob { name: own.into() });
        }
        assert_eq!(of(&[("RANK", "1"), ("WORLD_SIZE", "2")]), Ok(None));
        assert!(with(&[("PMI_RANK", "x")]).to_string().contains("PMI_RANK=x"));
        assert!(matches!(with(&[("RANK", "4"), ("WORLD_SIZE", "4")]), LaunchError::OutOfRange { .. }));
        let hosts = [("RANK", "1"), ("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2")];
        assert!(matches!(with(&hosts), LaunchError::ManyHosts { here: 2, size: 4, .. }));
        let hosts = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4"), ("SLURM_NNODES", "2")];
        assert_eq!(
            with(&hosts).to_string(),
            "SLURM_NNODES says that the processes are on 2 hosts: on several, have the launcher start `hectare run \
             --launched -- PROGRAM`"
        );
    }
}
