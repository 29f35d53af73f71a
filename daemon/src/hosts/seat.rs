//! The rank of a process that a launcher (SLURM, MPI, torchrun) has started, as it has the other processes of the program.
use super::slurm::{counts, nodes};
use std::fmt;

/// The place of a process among those of a program on several hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Which of all processes it is.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
    /// Which of those on this host it is.
    pub local_rank: u32,
    /// How many are on this host.
    pub local_size: u32,
    /// The host of rank 0, if the launcher says it.
    pub first_host: Option<String>,
    /// The port at which hosts meet there, if the launcher says it.
    pub port: Option<u16>,
    /// An identifier that is the same for all processes of this start, and of no other at the same time: on several hosts, a
    /// restart by torchrun has that of the start before it.
    pub job: Option<String>,
}

/// Why the environment does not say it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeatError {
    /// No launcher has started this process.
    #[error(
        "no launcher started this process: neither the variables of Open MPI (OMPI_COMM_WORLD_RANK), PMI (PMI_RANK), torchrun \
         (RANK) nor SLURM (SLURM_PROCID) are set"
    )]
    None,
    /// A variable is missing.
    #[error("{name} is not set, though {beside} is")]
    Missing {
        /// The variable.
        name: &'static str,
        /// The one that is there.
        beside: &'static str,
    },
    /// A variable has no meaning.
    #[error("{name}={value}: {what}")]
    Value {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The fault in it.
        what: String,
    },
}

/// The variables of a launcher.
struct Launcher {
    rank: &'static str,
    sizes: &'static [&'static str],
    local_rank: &'static str,
    local_size: Option<&'static str>,
    /// The variables that identify the start.
    job: &'static [&'static str],
}

/// The number of times that torchrun has restarted the processes of this host. It differs from host to host.
const RESTARTS: &str = "TORCHELASTIC_RESTART_COUNT";

/// SLURM comes last: its variables are also in the environment of what other launchers start inside of its allocations.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        rank: "PMI_RANK",
        sizes: &["PMI_SIZE"],
        local_rank: "MPI_LOCALRANKID",
        local_size: Some("MPI_LOCALNRANKS"),
        job: &[],
    },
    Launcher {
        rank: "RANK",
        sizes: &["WORLD_SIZE"],
        local_rank: "LOCAL_RANK",
        local_size: Some("LOCAL_WORLD_SIZE"),
        job: &["TORCHELASTIC_RUN_ID", RESTARTS, "MASTER_PORT"],
    },
    Launcher {
        rank: "SLURM_PROCID",
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        local_rank: "SLURM_LOCALID",
        local_size: None,
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
];

/// The place of a process, by what a launcher has put into its environment.
///
/// ```
/// use hectare_daemon::hosts::seat;
/// let variable = |name: &str| {
///     let all = [("RANK", "3"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "2"), ("MASTER_ADDR", "a")];
///     all.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
/// };
/// let seat = seat(variable)?;
/// assert_eq!((seat.rank, seat.size, seat.local_rank, seat.local_size), (3, 4, 1, 2));
/// assert_eq!(seat.first_host.as_deref(), Some("a"));
/// # Ok::<(), hectare_daemon::hosts::SeatError>(())
/// ```
///
/// # Errors
/// [`SeatError`]: no launcher, or variables that are missing or have no meaning.
pub fn seat(variable: impl Fn(&str) -> Option<String>) -> Result<Seat, SeatError> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let wrong = |name, value: &str, what: &dyn fmt::Display| SeatError::Value {
        name,
        value: value.into(),
        what: what.to_string(),
    };
    let number = |name: &'static str| -> Result<Option<u32>, SeatError> {
        let Some(value) = variable(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| wrong(name, &value, &"not a number"))
    };
    for launcher in LAUNCHERS {
        let Launcher { rank: name, sizes, local_rank, local_size, job } = launcher;
        let Some(rank) = number(name)? else { continue };
        // `srun --mpi=pmi2` sets PMI's rank and size, but not what MPI launchers say of the node.
        let is_srun = variable("SLURM_PROCID") == variable(name);
        if name == "PMI_RANK" && is_srun && variable(local_rank).is_none() {
            continue;
        }
        let needed = |other| number(other)?.ok_or(SeatError::Missing { name: other, beside: name });
        let sizes = sizes.iter().find(|size| variable(size).is_some()).or(sizes.last());
        let size = needed(sizes.copied().unwrap_or(name))?;
        if rank >= size {
            return Err(wrong(name, &rank.to_string(), &format!("there are only {size} processes")));
        }
        let local = needed(local_rank)?;
        let here = match local_size {
            Some(local_size) => needed(local_size)?,
            None => slurm_tasks(&variable, name)?,
        };
        if local >= here || here > size {
            return Err(wrong(
                local_rank,
                &local.to_string(),
                &format!("there are {here} of {size} processes here"),
            ));
        }
        let is_on_one_host = here == size;
        let names = job.iter().filter(|name| is_on_one_host || **name != RESTARTS);
        let mut words: Vec<String> = names.filter_map(|name| variable(name)).collect();
        // A step that the shell names means nothing without its job.
        words.retain(|word| word != "none");
        let prefix = match name {
            "RANK" => "torchrun".to_owned(),
            _ => name.split('_').next().unwrap_or_default().to_ascii_lowercase(),
        };
        let job = (!words.is_empty()).then(|| format!("{prefix}-{}", words.join("-")));
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let job = job.map(|job| job.chars().map(|c| if fits(c) { c } else { '-' }).collect());
        let first_host = first_host(&variable, name == "SLURM_PROCID")?;
        let port = torch_port(&variable)?;
        return Ok(Seat { rank, size, local_rank: local, local_size: here, first_host, port, job });
    }
    Err(SeatError::None)
}

/// How many tasks SLURM has started on this node.
fn slurm_tasks(variable: &impl Fn(&str) -> Option<String>, beside: &'static str) -> Result<u32, SeatError> {
    let node = variable("SLURM_NODEID").ok_or(SeatError::Missing { name: "SLURM_NODEID", beside })?;
    let wrong = |name, value: &str, what: String| SeatError::Value { name, value: value.into(), what };
    let node: usize = node.parse().map_err(|_| wrong("SLURM_NODEID", &node, "not a number".into()))?;
    let name = match variable("SLURM_STEP_TASKS_PER_NODE") {
        Some(_) => "SLURM_STEP_TASKS_PER_NODE",
        None => "SLURM_TASKS_PER_NODE",
    };
    let value = variable(name).ok_or(SeatError::Missing { name, beside })?;
    let all = counts(&value).map_err(|error| wrong(name, &value, error.to_string()))?;
    let none = || wrong(name, &value, format!("it has no number for node {node}"));
    all.get(node).copied().ok_or_else(none)
}

/// The host of rank 0: torchrun says it, and SLURM's list begins with it, unless the user has said which rank is where: SLURM sorts
/// the list. Another launcher within an allocation starts its helpers by steps of SLURM, a different one on each host or none.
fn first_host(
    variable: &impl Fn(&str) -> Option<String>,
    is_slurm: bool,
) -> Result<Option<String>, SeatError> {
    if let Some(host) = variable("MASTER_ADDR") {
        return Ok(Some(host));
    }
    if is_slurm && variable("SLURM_DISTRIBUTION").is_some_and(|how| how.starts_with("arbitrary")) {
        return Ok(None);
    }
    let lists = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"];
    for name in if is_slurm { &lists[..] } else { &lists[1..] } {
        if let Some(value) = variable(name) {
            let wrong = |error: super::SlurmError| SeatError::Value {
                name,
                value: value.clone(),
                what: error.to_string(),
            };
            return Ok(nodes(&value).map_err(wrong)?.into_iter().next());
        }
    }
    Ok(None)
}

/// The port after torchrun's, which torchrun itself uses to meet.
fn torch_port(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<u16>, SeatError> {
    let Some(value) = variable("MASTER_PORT") else { return Ok(None) };
    let next = value.parse::<u16>().ok().and_then(|port| port.checked_add(1));
    let what = "not a port from 0 to 65534 (the port after it is used)";
    next.map(Some).ok_or_else(|| SeatError::Value { name: "MASTER_PORT", value, what: what.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Seat, SeatError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        seat(find)
    }

    const SLURM: [(&str, &str); 9] = [
        ("SLURM_PROCID", "3"),
        ("SLURM_NTASKS", "8"),
        ("SLURM_STEP_NUM_TASKS", "5"),
        ("SLURM_LOCALID", "1"),
        ("SLURM_NODEID", "1"),
        ("SLURM_STEP_TASKS_PER_NODE", "2,3"),
        ("SLURM_JOB_NODELIST", "n[07-08]"),
        ("SLURM_JOB_ID", "4123"),
        ("SLURM_STEP_ID", "2"),
    ];

    #[test]
    fn slurm_says_nodes_and_tasks() {
        let seat = of(&SLURM).unwrap();
        assert_eq!((seat.rank, seat.size, seat.local_rank, seat.local_size), (3, 5, 1, 3));
        assert_eq!((seat.first_host.as_deref(), seat.port), (Some("n07"), None));
        assert_eq!(seat.job.as_deref(), Some("slurm-4123-2"));
    }

    #[test]
    fn the_launcher_inside_of_an_allocation_counts() {
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
            ("PMIX_NAMESPACE", "prterun-n07-812@1"),
        ];
        let seat = of(&[&SLURM[..], &mpi].concat()).unwrap();
        assert_eq!((seat.rank, seat.size, seat.local_size), (0, 2, 1));
        assert_eq!(seat.job.as_deref(), Some("ompi-prterun-n07-812-1"));
        let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "1")];
        let seat = of(&pmi).unwrap();
        assert_eq!((seat.first_host, seat.job, seat.port), (None, None, None));
        // Its helpers are steps on the other nodes.
        let helper = [("SLURM_STEP_NODELIST", "n08"), ("SLURM_STEP_ID", "4")];
        let other = of(&[&helper[..], &SLURM[..], &mpi].concat()).unwrap();
        assert_eq!(other.first_host.as_deref(), Some("n07"));
    }

    #[test]
    fn the_place_of_rank_0_is_unknown_where_the_user_places_ranks() {
        for (how, first) in [("arbitrary", None), ("arbitrary,Pack", None), ("block:cyclic", Some("n07"))] {
            let seat = of(&[&SLURM[..], &[("SLURM_DISTRIBUTION", how)]].concat()).unwrap();
            assert_eq!(seat.first_host.as_deref(), first, "{how}");
        }
    }

    #[test]
    fn srun_with_pmi2_is_slurm() {
        let pmi = [("PMI_RANK", "3"), ("PMI_SIZE", "5")];
        let seat = of(&[&SLURM[..], &pmi].concat()).unwrap();
        assert_eq!((seat.rank, seat.size, seat.local_rank, seat.local_size), (3, 5, 1, 3));
        assert_eq!(seat.job.as_deref(), Some("slurm-4123-2"));
        // Another launcher inside of the allocation, which says too little.
        let other = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
        let error = of(&[&SLURM[..], &other].concat()).unwrap_err();
        assert!(matches!(error, SeatError::Missing { name: "MPI_LOCALRANKID", .. }), "{error}");
    }

    #[test]
    fn a_port_without_a_next_one_is_refused() {
        for port in ["65535", "65536", "4294967295", "-1", "x"] {
            let torch = [("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1")];
            let error = of(&[&torch[..], &[("MASTER_PORT", port)]].concat()).unwrap_err();
            assert!(matches!(error, SeatError::Value { name: "MASTER_PORT", .. }), "{error}");
        }
    }

    #[test]
    fn torchrun_has_a_port_of_its_own() {
        let torch = [
            ("RANK", "1"),
            ("WORLD_SIZE", "2"),
            ("LOCAL_RANK", "0"),
            ("LOCAL_WORLD_SIZE", "1"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_RUN_ID", "none"),
            ("TORCHELASTIC_RESTART_COUNT", "0"),
        ];
        let seat = of(&torch).unwrap();
        assert_eq!((seat.first_host.as_deref(), seat.port), (Some("10.0.0.1"), Some(29501)));
        assert_eq!(seat.job.as_deref(), Some("torchrun-29500"));
        // On one host, a restart is told from the start before it, which may still be ending.
        let mut alone = torch;
        (alone[0].1, alone[1].1, alone[6].1, alone[7].1) = ("0", "1", "my run", "2");
        assert_eq!(of(&alone).unwrap().job.as_deref(), Some("torchrun-my-run-2-29500"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        assert_eq!(of(&[]).unwrap_err(), SeatError::None);
        let said = |variables: &[(&str, &str)]| of(variables).unwrap_err().to_string();
        assert!(said(&[("RANK", "0")]).contains("WORLD_SIZE is not set, though RANK is"));
        assert!(said(&[("RANK", "x")]).contains("RANK=x: not a number"));
        assert!(said(&[("RANK", "2"), ("WORLD_SIZE", "2")]).contains("only 2 processes"));
        let local = [("RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "2"), ("LOCAL_WORLD_SIZE", "2")];
        assert!(said(&local).contains("LOCAL_RANK=2: there are 2 of 2"));
        let mut slurm = SLURM;
        slurm[5].1 = "2";
        assert!(said(&slurm).contains("no number for node 1"));
    }
}
