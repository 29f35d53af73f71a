//! The hosts that SLURM has allocated to the script, or the shell, in which a command runs.
use super::list::Host;
use super::slurm::{SlurmError, counts, nodes};

/// Variables that say no allocation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocationError {
    /// There is none.
    #[error("SLURM_JOB_NODELIST is not set: not inside a SLURM allocation (sbatch, salloc)")]
    None,
    /// A variable cannot be read.
    #[error("{name}: {source}")]
    Value {
        /// The variable.
        name: String,
        /// The fault in it.
        source: SlurmError,
    },
    /// Nodes and numbers do not go together.
    #[error("{name} has numbers for {counts} nodes, and SLURM_JOB_NODELIST has {nodes}")]
    Counts {
        /// The variable.
        name: String,
        /// Nodes that it is about.
        counts: usize,
        /// Nodes that there are.
        nodes: usize,
    },
    /// A node is there twice.
    #[error("SLURM_JOB_NODELIST has {0} twice")]
    Twice(String),
    /// A node has no task.
    #[error("{name} has no task for {node}")]
    NoTask {
        /// The variable.
        name: String,
        /// The node.
        node: String,
    },
}

/// The nodes of an allocation, each with room for as many ranks as it has tasks: those of `SLURM_TASKS_PER_NODE`, else of
/// `SLURM_NTASKS_PER_NODE`, else one.
///
/// ```
/// use hectare_daemon::hosts::allocation;
/// let variable = |name: &str| match name {
///     "SLURM_JOB_NODELIST" => Some("gpu[1-2],big".to_owned()),
///     "SLURM_TASKS_PER_NODE" => Some("2(x2),8".to_owned()),
///     _ => None,
/// };
/// let hosts = allocation(variable)?;
/// assert_eq!((hosts[1].name.as_str(), hosts[1].slots, hosts[2].slots), ("gpu2", 2, 8));
/// # Ok::<(), hectare_daemon::hosts::AllocationError>(())
/// ```
///
/// # Errors
/// [`AllocationError`]: no allocation, or values that SLURM would not write.
pub fn allocation(variable: impl Fn(&str) -> Option<String>) -> Result<Vec<Host>, AllocationError> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let of = |name: &'static str| move |source| AllocationError::Value { name: name.into(), source };
    let list = variable("SLURM_JOB_NODELIST").ok_or(AllocationError::None)?;
    let nodes = nodes(&list).map_err(of("SLURM_JOB_NODELIST"))?;
    if let Some((_, twice)) = nodes.iter().enumerate().find(|(at, node)| nodes[..*at].contains(node)) {
        return Err(AllocationError::Twice(twice.clone()));
    }
    let names = ["SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"];
    let set = names.into_iter().find_map(|name| Some((name, variable(name)?)));
    let slots = match &set {
        Some((name, value)) => counts(value).map_err(of(name))?,
        None => vec![1],
    };
    let name = set.map_or("", |(name, _)| name);
    let slots = match slots[..] {
        // One number is that of each node.
        [each] => vec![each; nodes.len()],
        _ => slots,
    };
    if slots.len() != nodes.len() {
        let (name, counts, nodes) = (name.into(), slots.len(), nodes.len());
        return Err(AllocationError::Counts { name, counts, nodes });
    }
    let host = |(node, slots): (String, u32)| match slots {
        0 => Err(AllocationError::NoTask { name: name.into(), node }),
        slots => Ok(Host { name: node, address: None, slots }),
    };
    nodes.into_iter().zip(slots).map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::{AllocationError, allocation};

    fn of(variables: &[(&str, &str)]) -> Result<Vec<(String, u32)>, AllocationError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        Ok(allocation(find)?.into_iter().map(|host| (host.name, host.slots)).collect())
    }

    #[test]
    fn each_form_is_read() {
        let two = |slots: [u32; 2]| Ok(vec![("n1".to_owned(), slots[0]), ("n2".to_owned(), slots[1])]);
        let list = ("SLURM_JOB_NODELIST", "n[1-2]");
        assert_eq!(of(&[list]), two([1, 1]));
        assert_eq!(of(&[list, ("SLURM_TASKS_PER_NODE", "4(x2)")]), two([4, 4]));
        assert_eq!(of(&[list, ("SLURM_TASKS_PER_NODE", "4,2"), ("SLURM_NTASKS_PER_NODE", "9")]), two([4, 2]));
        assert_eq!(of(&[list, ("SLURM_NTASKS_PER_NODE", "3")]), two([3, 3]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let fails = |variables: &[(&str, &str)]| of(variables).unwrap_err().to_string();
        assert_eq!(of(&[]), Err(AllocationError::None));
        let list = ("SLURM_JOB_NODELIST", "n[1-3]");
        let said = fails(&[list, ("SLURM_TASKS_PER_NODE", "2(x2)")]);
        assert_eq!(said, "SLURM_TASKS_PER_NODE has numbers for 2 nodes, and SLURM_JOB_NODELIST has 3");
        assert!(fails(&[list, ("SLURM_TASKS_PER_NODE", "2(")]).starts_with("SLURM_TASKS_PER_NODE: column 3"));
        assert!(fails(&[("SLURM_JOB_NODELIST", "n[1-")]).starts_with("SLURM_JOB_NODELIST: column 5"));
        assert_eq!(fails(&[("SLURM_JOB_NODELIST", "a,b,a")]), "SLURM_JOB_NODELIST has a twice");
        let said = fails(&[list, ("SLURM_TASKS_PER_NODE", "1,0,1")]);
        assert_eq!(said, "SLURM_TASKS_PER_NODE has no task for n2");
    }
}
