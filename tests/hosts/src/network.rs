//! The namespaces, the devices and the switch.
use crate::fault::{Fault, address, other_address, rules};
use crate::late::{LateSwitch, tap};
use crate::leftover::{all, name, remove, sweep};
use crate::tool::{ip, run, within};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::io::{Error, Result};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// For so long, at most, the ports of a switch are waited for.
const LONGEST_START: Duration = Duration::from_secs(20);

/// The properties of a network.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The largest packet of a host's device, in bytes.
    pub mtu: u32,
    /// The largest packet that the switch passes on, if it is smaller than what the hosts are told.
    pub passes: Option<u32>,
    /// Whether several packets may cross the network as one (GSO), as they do on fast devices. Without, a fault meets
    /// single packets.
    pub segments: bool,
    /// How long each frame takes to the other hosts. Not zero: a thread is the switch, and there are no faults or limits.
    pub delay: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { mtu: 1500, passes: None, segments: false, delay: Duration::ZERO }
    }
}

/// Several hosts and the switch between them.
#[derive(Debug)]
pub struct Network {
    /// The start of the names of its namespaces.
    name: String,
    hosts: usize,
    /// Whether there are slow ways.
    has_detours: bool,
    late: Option<LateSwitch>,
}

impl Network {
    /// Makes a network of `hosts` hosts.
    ///
    /// # Errors
    /// The message of `ip`: no rights, no `ip`, or a kernel without namespaces.
    ///
    /// # Panics
    /// If there are no hosts, or more than 250.
    pub fn new(hosts: usize, settings: &Settings) -> Result<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        assert!((1..=250).contains(&hosts), "{hosts} hosts");
        sweep()?;
        // Relaxed: only the number counts.
        let name = name(NEXT.fetch_add(1, Ordering::Relaxed));
        let mut network = Network { name, hosts, has_detours: false, late: None };
        match settings.delay {
            Duration::ZERO => network.build(settings)?,
            delay => network.build_late(settings.mtu, delay)?,
        }
        Ok(network)
    }

    fn build(&self, settings: &Settings) -> Result<()> {
        let switch = self.switch();
        ip(&["netns", "add", &switch])?;
        let mut ports = String::from("link add switch type bridge\nlink set switch up\n");
        for host in 0..self.hosts {
            let namespace = self.namespace(host);
            ip(&["netns", "add", &namespace])?;
            let (mtu, passes) = (settings.mtu, settings.passes.unwrap_or(settings.mtu));
            let _ = writeln!(ports, "link add port{host} type veth peer name eth0 netns {namespace}");
            let _ = writeln!(ports, "link set port{host} mtu {passes} master switch up");
            let segments = if settings.segments { "" } else { "gso_max_segs 1" };
            let device = format!(
                "link set lo up\nlink set eth0 mtu {mtu} {segments} up\naddress add {}/24 dev eth0\n",
                address(host)
            );
            run(Command::new("ip").args(["-n", &switch, "-batch", "-"]), &std::mem::take(&mut ports))?;
            run(Command::new("ip").args(["-n", &namespace, "-batch", "-"]), &device)?;
        }
        self.wait_for_ports()
    }

    /// The kernel lets packets through a port some time after both of its ends are up. Until then a question for an address is
    /// lost, and is asked again after a second only.
    fn wait_for_ports(&self) -> Result<()> {
        let since = Instant::now();
        loop {
            let said = run(Command::new("bridge").args(["-n", &self.switch(), "link", "show"]), "")?;
            if said.matches("state forwarding").count() == self.hosts {
                return Ok(());
            }
            if since.elapsed() > LONGEST_START {
                return Err(Error::other(format!("ports of the switch that pass nothing on: {said}")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The hosts, with taps that a thread joins.
    fn build_late(&mut self, mtu: u32, delay: Duration) -> Result<()> {
        let mut ends = Vec::new();
        for host in 0..self.hosts {
            let namespace = self.namespace(host);
            ip(&["netns", "add", &namespace])?;
            ends.push(run_within(&namespace, || tap("eth0"))??);
            let (mtu, address) = (mtu.to_string(), format!("{}/24", address(host)));
            ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
            ip(&["-n", &namespace, "link", "set", "eth0", "mtu", &mtu, "up"])?;
            ip(&["-n", &namespace, "address", "add", &address, "dev", "eth0"])?;
        }
        self.late = Some(LateSwitch::start(ends, delay));
        Ok(())
    }

    /// A second way to each host: a pair of devices from the switch back to it, on which packets wait.
    fn build_detours(&self) -> Result<()> {
        let mut detours = String::new();
        for host in 0..self.hosts {
            let _ = writeln!(detours, "link add slow{host} type veth peer name back{host}");
            let _ = writeln!(detours, "link set slow{host} up\nlink set back{host} master switch up");
            // Else answers would go there.
            let _ = writeln!(
                detours,
                "link set back{host} type bridge_slave learning off flood off mcast_flood off"
            );
        }
        run(Command::new("ip").args(["-n", &self.switch(), "-batch", "-"]), &detours)?;
        (0..self.hosts).try_for_each(|host| self.queue(&format!("slow{host}"), 8_000_000, "2kb"))
    }

    /// Has packets wait before a device of the switch, for 50 ms at most.
    fn queue(&self, device: &str, bits_per_second: u64, burst: &str) -> Result<()> {
        let rate = format!("{bits_per_second}bit");
        let words = [
            "qdisc", "replace", "dev", device, "root", "tbf", "rate", &rate, "burst", burst, "latency",
            "50ms",
        ];
        run(within(&self.switch(), "tc").args(words), "").map(drop)
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.name)
    }

    /// The name of a host's namespace, for `ip netns`.
    pub fn namespace(&self, host: usize) -> String {
        assert!(host < self.hosts, "host {host} of {}", self.hosts);
        format!("{}-{host}", self.name)
    }

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// The address of a host.
    pub fn address(&self, host: usize) -> Ipv4Addr {
        assert!(host < self.hosts, "host {host} of {}", self.hosts);
        address(host)
    }

    /// A command on a host. Its process takes the place of `ip netns exec`: signals reach it.
    pub fn command(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        within(&self.namespace(host), program)
    }

    /// The same, but that the command sees this machine's `/sys` in place of the host's: its control groups, and not its devices.
    pub fn command_in_group(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(host))).arg(program);
        command
    }

    /// Runs a function on a host, in a thread of its own: sockets that it makes are of that host for ever.
    ///
    /// # Errors
    /// If the thread may not enter the namespace.
    ///
    /// # Panics
    /// As the function does.
    pub fn run_on<T: Send>(&self, host: usize, function: impl FnOnce() -> T + Send) -> Result<T> {
        run_within(&self.namespace(host), function)
    }

    /// The same on the switch, which sees what goes to a host, and what comes from it, at a device.
    ///
    /// # Errors
    /// If the thread may not enter the namespace.
    ///
    /// # Panics
    /// As the function does.
    pub fn run_on_switch<T: Send>(&self, function: impl FnOnce() -> T + Send) -> Result<T> {
        run_within(&self.switch(), function)
    }

    /// The name of the device of the switch to which a host is connected.
    pub fn port(&self, host: usize) -> String {
        assert!(host < self.hosts, "host {host} of {}", self.hosts);
        format!("port{host}")
    }

    /// The processes on a host.
    ///
    /// # Errors
    /// The message of `ip`.
    pub fn processes(&self, host: usize) -> Result<Vec<u32>> {
        let pids = ip(&["netns", "pids", &self.namespace(host)])?;
        Ok(pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// These faults, in the place of all former ones. They meet a packet in this order.
    ///
    /// # Errors
    /// The message of `nft`.
    pub fn set(&mut self, faults: &[Fault]) -> Result<()> {
        let is_detour = |fault: &Fault| matches!(fault, Fault::Detour { .. });
        if faults.iter().any(is_detour) && !std::mem::replace(&mut self.has_detours, true) {
            self.build_detours()?;
        }
        for fault in faults {
            if let Fault::Renumber { host, to } = *fault {
                // So that it answers who asks for the device of that address.
                let other = format!("{}/32", other_address(host, to));
                ip(&["-n", &self.namespace(host), "address", "replace", &other, "dev", "lo"])?;
            }
        }
        run(within(&self.switch(), "nft").args(["-f", "-"]), &rules(self.hosts, faults)).map(drop)
    }

    /// The largest packet that a host's device says it carries, from now on, in bytes.
    ///
    /// # Errors
    /// The message of `ip`.
    pub fn set_mtu(&mut self, host: usize, bytes: u32) -> Result<()> {
        let device = ["-n", &self.namespace(host), "link", "set", "eth0", "mtu", &bytes.to_string()];
        ip(&device).map(drop)
    }

    /// The largest packet to and from a host that the switch passes on, from now on, in bytes; nobody is told.
    ///
    /// # Errors
    /// The message of `ip`.
    pub fn set_passes(&mut self, host: usize, bytes: u32) -> Result<()> {
        assert!(host < self.hosts, "host {host} of {}", self.hosts);
        ip(&["-n", &self.switch(), "link", "set", &format!("port{host}"), "mtu", &bytes.to_string()])
            .map(drop)
    }

    /// Limits what a host receives, in bits a second; more waits in a queue of 50 ms, and what finds it full is lost.
    ///
    /// # Errors
    /// The message of `tc`.
    pub fn limit(&mut self, host: usize, bits_per_second: u64) -> Result<()> {
        assert!(host < self.hosts, "host {host} of {}", self.hosts);
        self.queue(&format!("port{host}"), bits_per_second, "64kb")
    }

    /// Ends the limit of what a host receives. What waits in the queue is lost.
    ///
    /// # Errors
    /// The message of `tc`; also if there was no limit.
    pub fn unlimit(&mut self, host: usize) -> Result<()> {
        let port = format!("port{host}");
        assert!(host < self.hosts, "host {host} of {}", self.hosts);
        run(within(&self.switch(), "tc").args(["qdisc", "del", "dev", &port, "root"]), "").map(drop)
    }
}

/// Runs a function in a namespace, in a thread of its own.
fn run_within<T: Send>(namespace: &str, function: impl FnOnce() -> T + Send) -> Result<T> {
    let namespace = File::open(format!("/run/netns/{namespace}"))?;
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(function())
    };
    let ended = std::thread::scope(|scope| scope.spawn(enter).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for Network {
    fn drop(&mut self) {
        let result: Result<()> = all().and_then(|all| {
            let prefix = format!("{}-", self.name);
            all.iter().filter(|namespace| namespace.starts_with(&prefix)).try_for_each(|name| remove(name))
        });
        if let Err(error) = result
            && !std::thread::panicking()
        {
            panic!("the namespaces of {} are left: {error}", self.name);
        }
    }
}
