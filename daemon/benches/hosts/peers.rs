//! The same bytes by what training programs use today: a broadcast by Open MPI and by gloo.
use crate::common::cluster::Cluster;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The most that one of them may take.
const LIMIT: &str = "120";

/// Median and best of so many bytes, in Gbit/s, if it is there.
pub(crate) type Peer = fn(&Cluster, usize) -> Option<(f64, f64)>;

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers/broadcast.py").display().to_string()
}

/// The Python that has mpi4py and torch.
fn python() -> String {
    std::env::var("HECTARE_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Median and best, in Gbit/s; `None` if the program is not there, with the reason printed.
fn figures(name: &str, said: std::io::Result<Output>) -> Option<(f64, f64)> {
    let said = match said {
        Ok(said) => said,
        Err(error) => {
            println!("{name}: not measured: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&said.stdout);
    let of = |word: &str| {
        text.lines().find_map(|line| line.trim().strip_prefix(word)).and_then(|rest| rest.trim().parse().ok())
    };
    let found = of("median ").zip(of("best "));
    if found.is_none() {
        let errors = String::from_utf8_lossy(&said.stderr);
        let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        println!("{name}: not measured: {last}");
    }
    found
}

/// A broadcast by MPI from the first host to the second.
pub(crate) fn mpi(cluster: &Cluster, bytes: usize) -> Option<(f64, f64)> {
    let network = &cluster.network;
    let (first, second) = (network.address(0).to_string(), network.address(1).to_string());
    // In place of a remote shell: what it is to run on the second host, it runs in that namespace.
    let mut agent = tempfile::NamedTempFile::new().expect("a file");
    let namespace = network.namespace(1);
    writeln!(
        agent,
        "#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nshift\n\
         exec ip netns exec {namespace} unshare --uts bash -c \"hostname {namespace}; $*\""
    )
    .expect("it is written");
    let agent = agent.into_temp_path();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let mut run: Command = network.command(0, "timeout");
    run.args([LIMIT, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"])
        .args(["--host", &format!("{first}:1,{second}:1")])
        .args(["--mca", "plm_rsh_agent", &agent.display().to_string()])
        // Not by shared memory, which both happen to have.
        .args(["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"])
        .args(["--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"])
        .args([&python(), &script(), "mpi", &bytes.to_string()]);
    figures("Open MPI", run.stdin(Stdio::null()).output())
}

/// A broadcast by gloo from the first host to the second.
pub(crate) fn gloo(cluster: &Cluster, bytes: usize) -> Option<(f64, f64)> {
    let address = format!("{}:7719", cluster.network.address(0));
    let command = |rank: usize| {
        let mut run: Command = cluster.network.command(rank, "timeout");
        run.env("GLOO_SOCKET_IFNAME", "eth0").args([LIMIT, &python(), &script(), "gloo", &bytes.to_string()]);
        run.args([&rank.to_string(), &address]).stdin(Stdio::null());
        run
    };
    let mut first = match command(0).stderr(Stdio::null()).spawn() {
        Ok(first) => first,
        Err(error) => return figures("gloo", Err(error)),
    };
    let said = figures("gloo", command(1).output());
    let _ = first.wait();
    said
}
