//! Hosts that do not fit: the job on the others ends within its time-out, and names the host, its address and the cause. The launcher
//! finds most of this before it starts anything (`hosts.rs`); here it is the agents who find it.
use crate::areas_on_hosts::{in_role, read_until};
use crate::common::cluster::{Cluster, Running};
use crate::common::{role_here, until};
use hectare_dsm::{Error, Job};
use hectare_wire::{
    AgentStatus, Cipher, Connection, JobHost, JobHosts, JobSettings, Member, Request, TransportChoice,
};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROLE: &str = "MISFIT_ROLE";
const SILENCE: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(60);

/// An agent of version 7 of the protocol: it refuses every Hello, in the form that all versions have in common.
#[test]
fn role() {
    let Ok(address) = std::env::var(ROLE) else { return };
    let socket = UdpSocket::bind(address).unwrap();
    println!("bound");
    let mut bytes = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut bytes).unwrap();
        if length < 20 || bytes[0] != 1 {
            continue;
        }
        let mut refusal = bytes[..20].to_vec();
        refusal[0] = 5;
        refusal[4..6].copy_from_slice(&7_u16.to_le_bytes());
        refusal[6..8].copy_from_slice(&[1, 0]);
        refusal[16..].fill(0);
        socket.send_to(&refusal, from).unwrap();
    }
}

/// Makes a host's part of a job of which `hosts` are where these addresses say; whoever holds it.
fn make(cluster: &Cluster, index: usize, id: u8, addresses: &[SocketAddr]) -> Member {
    make_with(cluster, index, id, addresses, Cipher::default())
}

fn make_with(cluster: &Cluster, index: usize, id: u8, addresses: &[SocketAddr], cipher: Cipher) -> Member {
    let host = |(host, address): (usize, &SocketAddr)| JobHost {
        name: format!("h{host}"),
        address: *address,
        ranks: 1,
        dpdk: None,
    };
    let hosts = JobHosts {
        id: [id; 16],
        index: index as u16,
        hosts: addresses.iter().enumerate().map(host).collect(),
        key_file: cluster.key(index).to_str().unwrap().into(),
        silence_ms: SILENCE.as_millis() as u64,
        cipher,
        transport: TransportChoice::default(),
    };
    let dir = cluster.dir(index);
    let settings = JobSettings { bytes: Some(64 << 20), ..JobSettings::default() };
    let make = Request::CreateOnHosts { job: "misfit".into(), settings, keep: false, hosts: Box::new(hosts) };
    Connection::open(&dir).unwrap().order(&make).unwrap();
    Member::hold(&dir, "misfit").unwrap()
}

/// A worker of host 0 that waits for the others; it hears within the time-out who failed, and so does who looks.
fn ends(cluster: &Cluster, member: &Member, parts: &[&str]) {
    let job = Job::from_descriptor(member.memory().try_clone_to_owned().unwrap()).unwrap();
    let mut worker = job.worker().unwrap();
    let error = worker.wait_for_workers(cluster.network.hosts(), LONG).unwrap_err();
    assert!(matches!(error, Error::PeerFailed { .. }), "{error}");
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
    let log = || cluster.daemons[0].log();
    until("the agent to say it", || parts.iter().all(|part| log().contains(part)));
}

fn addresses(cluster: &Cluster) -> Vec<SocketAddr> {
    (0..cluster.network.hosts()).map(|host| (cluster.network.address(host), 7400).into()).collect()
}

#[test]
fn a_host_that_does_not_fit_is_named_with_the_cause() {
    let Some(cluster) = Cluster::new(2) else { return };
    let addresses = addresses(&cluster);
    let to = addresses[1].to_string();
    let gone = |members: Vec<Member>| {
        drop(members);
        cluster.assert_nothing_is_left();
    };
    // Nobody is there.
    let here = make(&cluster, 0, 1, &addresses);
    ends(&cluster, &here, &[&to, "nobody answers at"]);
    gone(vec![here]);
    // Another version of the protocol.
    let mut other = Other::start(&cluster, 1, addresses[1]);
    let here = make(&cluster, 0, 2, &addresses);
    ends(&cluster, &here, &[&to, "it speaks version 7 of the protocol"]);
    other.end();
    gone(vec![here]);
    // No cipher.
    let plain = make_with(&cluster, 1, 6, &addresses, Cipher::None);
    let here = make(&cluster, 0, 6, &addresses);
    ends(&cluster, &here, &[&to, "runs without encryption, the other does not"]);
    gone(vec![here, plain]);
    // Another job at that address.
    let members = vec![make(&cluster, 0, 3, &addresses), make(&cluster, 1, 4, &addresses)];
    ends(&cluster, &members[0], &[&to, "it serves another job"]);
    gone(members);
    // Another key, and another cluster.
    for (cluster_name, cause) in [("lab", "it has another key"), ("barn", "it belongs to another cluster")] {
        std::fs::remove_file(cluster.key(1)).unwrap();
        hectare_daemon::key_file::make(&cluster.key(1), cluster_name).unwrap();
        let members = vec![make(&cluster, 0, 5, &addresses), make(&cluster, 1, 5, &addresses)];
        ends(&cluster, &members[0], &[&to, cause]);
        gone(members);
    }
}

#[test]
fn two_hosts_that_were_given_one_address_are_named() {
    let Some(cluster) = Cluster::new(3) else { return };
    let addresses = addresses(&cluster);
    // Host 0 was told the address of host 2 for host 1, which is not there to call by itself.
    let swapped = [addresses[0], addresses[2], addresses[1]];
    let members = [make(&cluster, 0, 1, &swapped), make(&cluster, 2, 1, &addresses)];
    ends(
        &cluster,
        &members[0],
        &["two hosts were given one address", "host 2 answers at the address of host 1"],
    );
    drop(members);
    cluster.assert_nothing_is_left();
}

/// A process that plays an agent on a host.
struct Other(Child);

impl Other {
    fn start(cluster: &Cluster, host: usize, address: SocketAddr) -> Other {
        let mut command = cluster.network.command(host, std::env::current_exe().unwrap());
        command.args(["--exact", &role_here(), "--nocapture"]).env(ROLE, address.to_string());
        let running = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Other(running.unwrap())
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.end();
    }
}

fn set_mtu(cluster: &Cluster, host: usize, mtu: u32) {
    let set = ["-n", &cluster.name(host), "link", "set", "eth0", "mtu", &mtu.to_string()];
    assert!(Command::new("ip").args(set).status().unwrap().success());
}

fn standing(cluster: &Cluster, host: usize) -> AgentStatus {
    let said = cluster.hectare(host, &["peers", "mtu", "--json"]);
    let mut all: Vec<AgentStatus> = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    all.remove(0)
}

/// The interface of host 0 promises more than the way to host 1 carries, which later carries still less: nobody says so, packets
/// vanish. (A cable of the kernel's carries four bytes more than its MTU.)
#[test]
fn an_mtu_that_lies_is_found_and_shown() {
    let Some(cluster) = Cluster::new(2) else { return };
    set_mtu(&cluster, 1, 1400);
    let list = cluster.list(1);
    let role = in_role("turns:100000");
    let mut run =
        Running::start(cluster.command(&["--hosts", &list, "--timeout", "20", "--job", "mtu"], &role));
    read_until(&mut run, "turn ");
    let path = || standing(&cluster, 0).peers[0].session.as_ref().map_or(0, |session| session.path_mtu);
    until("the largest packet to be found", || (1370..=1404).contains(&path()));
    set_mtu(&cluster, 1, 1300);
    until("the smaller one to be found", || (1248..=1304).contains(&path()));
    assert!(standing(&cluster, 0).peers[0].session.as_ref().unwrap().black_holes > 0);
    read_until(&mut run, "turn ");
    run.signal(rustix::process::Signal::INT);
    run.end();
    cluster.assert_nothing_is_left();
}
