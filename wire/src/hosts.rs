//! The hosts of a job on several hosts.
use crate::{Refusal, TransportChoice};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The most hosts of a job.
pub const MAX_HOSTS: usize = 256;
/// The longest name of a host, in bytes.
const MAX_NAME: usize = 128;

/// The hosts of a job, in the form for one of them. All but `index`, `key_file` and `transport`
/// is the same on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobHosts {
    /// Tells this job from every other one of the cluster, also from earlier ones of its name: whoever starts it draws 16
    /// random bytes.
    pub id: [u8; 16],
    /// The index of this host in `hosts`.
    pub index: u16,
    /// The hosts, in the order of their ranks. The first one has the directory of names, and decides who has failed.
    pub hosts: Vec<JobHost>,
    /// The absolute path of the file with the cluster's key on this host, which `hectare key new` makes.
    pub key_file: String,
    /// The silence, in milliseconds, after which a host has failed, and with it the job. All hosts have to appear within that
    /// time, too.
    pub silence_ms: u64,
    /// How packets between the hosts are sealed.
    #[serde(default)]
    pub cipher: Cipher,
    /// How this host's agent reaches those of the others.
    #[serde(default)]
    pub transport: TransportChoice,
}

/// How packets between hosts are sealed. When a session begins, hosts prove in any case that they have the cluster's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// Encrypted and authenticated.
    #[default]
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// With a checksum only: anyone on the network can read and forge packets. For networks on which every machine is trusted.
    #[serde(rename = "none")]
    None,
}

impl Cipher {
    /// Its name, as it is written in files, flags and answers.
    pub fn name(self) -> &'static str {
        match self {
            Cipher::Aes128Gcm => "aes-128-gcm",
            Cipher::None => "none",
        }
    }
}

impl std::str::FromStr for Cipher {
    type Err = UnknownCipher;

    fn from_str(name: &str) -> Result<Cipher, UnknownCipher> {
        let all = [Cipher::Aes128Gcm, Cipher::None];
        all.into_iter().find(|cipher| cipher.name() == name).ok_or(UnknownCipher)
    }
}

/// A name of no [`Cipher`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected aes-128-gcm or none")]
pub struct UnknownCipher;

/// One host of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobHost {
    /// Its name, for messages.
    pub name: String,
    /// The address at which its agent receives datagrams.
    pub address: SocketAddr,
    /// The number of its ranks: host 0 has those from 0 on, host 1 the next ones, and so on.
    pub ranks: u32,
    /// The address at which its agent receives datagrams at a port of DPDK, if it has one; the number is that of `address`.
    #[serde(default)]
    pub dpdk: Option<Ipv4Addr>,
}

impl JobHost {
    /// The address of its agent's DPDK port, if it has one.
    pub fn port(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.dpdk?.into(), self.address.port()))
    }
}

impl JobHosts {
    /// The default of `silence_ms`.
    pub const SILENCE_MS: u64 = 30_000;

    /// This host.
    ///
    /// # Panics
    /// If there is none of that number, which [`JobHosts::check`] refuses.
    pub fn own(&self) -> &JobHost {
        &self.hosts[usize::from(self.index)]
    }

    /// The ranks of a host; an empty range for a number without a host.
    pub fn ranks_of(&self, index: u16) -> std::ops::Range<u32> {
        let ranks = |hosts: &[JobHost]| hosts.iter().fold(0, |sum: u32, host| sum.saturating_add(host.ranks));
        let index = usize::from(index).min(self.hosts.len());
        ranks(&self.hosts[..index])..ranks(&self.hosts[..(index + 1).min(self.hosts.len())])
    }

    /// Checks that the hosts can be those of a job.
    ///
    /// ```
    /// use hectare_wire::{JobHost, JobHosts};
    /// let host = |name: &str, address: &str| -> Result<JobHost, std::net::AddrParseError> {
    ///     Ok(JobHost { name: name.into(), address: address.parse()?, ranks: 2, dpdk: None })
    /// };
    /// let hosts = vec![host("a", "10.0.0.1:7117")?, host("b", "10.0.0.2:7117")?];
    /// let key_file = "/etc/hectare/cluster.key".to_owned();
    /// let (silence_ms, cipher, transport) = (JobHosts::SILENCE_MS, Default::default(), Default::default());
    /// let hosts = JobHosts { id: [7; 16], index: 1, hosts, key_file, silence_ms, cipher, transport };
    /// assert!(hosts.check("mf").is_ok());
    /// assert_eq!((hosts.own().name.as_str(), hosts.ranks_of(1)), ("b", 2..4));
    /// assert!(JobHosts { index: 2, ..hosts }.check("mf").is_err());
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    ///
    /// # Errors
    /// [`Refusal::Hosts`] with the rule that they break.
    pub fn check(&self, job: &str) -> Result<(), Refusal> {
        let refuse = |what: String| Err(Refusal::Hosts { job: job.into(), what });
        let count = self.hosts.len();
        if count == 0 || count > MAX_HOSTS {
            return refuse(format!("{count} hosts, not 1 to {MAX_HOSTS}"));
        }
        if usize::from(self.index) >= count {
            return refuse(format!("there is no host {} of {count}", self.index));
        }
        if self.id == [0; 16] {
            return refuse("the number of the job is 0".into());
        }
        if !self.key_file.starts_with('/') {
            return refuse(format!("the key file {:?} is no absolute path", self.key_file));
        }
        if self.silence_ms == 0 {
            return refuse("the time-out for silent hosts is zero".into());
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let JobHost { name, address, .. } = host;
            if name.is_empty() || name.len() > MAX_NAME {
                return refuse(format!(
                    "the name of host {number} has {} bytes, not 1 to {MAX_NAME}",
                    name.len()
                ));
            }
            if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
                return refuse(format!("{address}, the address of {name}, is not one of a host's port"));
            }
            if address.is_ipv4() != self.hosts[0].address.is_ipv4() {
                return refuse(format!(
                    "{name} has an address of IPv4 and {} one of IPv6, or the other way around",
                    self.hosts[0].name
                ));
            }
            if let Some(other) = self.hosts[..number].iter().find(|other| other.address == *address) {
                return refuse(format!("{} and {name} have one address, {address}", other.name));
            }
            self.check_port(job, number)?;
        }
        let total = self.hosts.iter().map(|host| u64::from(host.ranks)).sum::<u64>();
        if total > u64::from(u32::MAX) {
            return refuse(format!("{total} ranks"));
        }
        Ok(())
    }
}

impl JobHosts {
    /// Checks the port of DPDK of a host, or that it needs none.
    fn check_port(&self, job: &str, number: usize) -> Result<(), Refusal> {
        let refuse = |what: String| Err(Refusal::Hosts { job: job.into(), what });
        let host = &self.hosts[number];
        let Some(port) = host.port() else {
            return match self.transport {
                TransportChoice::Dpdk => refuse(format!(
                    "{} has no DPDK port, and {} is to reach it by DPDK alone (transport = \"dpdk\"): give it a port by [dpdk] in \
                     the configuration of its hectared, which is built with DPDK, or choose \"auto\"",
                    host.name,
                    self.own().name
                )),
                _ => Ok(()),
            };
        };
        let is_host = |ip: IpAddr| !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback();
        if !is_host(port.ip()) {
            return refuse(format!(
                "{}, the address of {}'s DPDK port, is not a host's",
                port.ip(),
                host.name
            ));
        }
        let is_same = |other: &&JobHost| other.address == port || other.port() == Some(port);
        let others = self.hosts.iter().enumerate().filter(|(other, _)| *other != number);
        match others.map(|(_, other)| other).find(is_same) {
            Some(other) => {
                refuse(format!("{}'s DPDK port and {} have one address, {port}", host.name, other.name))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> JobHosts {
        let host = |name: &str, address: &str| JobHost {
            name: name.into(),
            address: address.parse().unwrap(),
            ranks: 3,
            dpdk: None,
        };
        let hosts = vec![host("a", "10.0.0.1:7117"), host("b", "10.0.0.2:7117")];
        let (cipher, transport) = (Cipher::default(), TransportChoice::default());
        JobHosts { id: [1; 16], index: 0, hosts, key_file: "/k".into(), silence_ms: 1000, cipher, transport }
    }

    #[test]
    fn what_cannot_be_hosts_is_named() {
        assert_eq!(two().check("j"), Ok(()));
        let refused = |change: fn(&mut JobHosts)| {
            let mut hosts = two();
            change(&mut hosts);
            hosts.check("j").unwrap_err().to_string()
        };
        type Change = fn(&mut JobHosts);
        let cases: [(Change, &str); 14] = [
            (|hosts| hosts.hosts.clear(), "0 hosts"),
            (|hosts| hosts.hosts = vec![hosts.hosts[0].clone(); 257], "257 hosts"),
            (|hosts| hosts.index = 2, "no host 2 of 2"),
            (|hosts| hosts.id = [0; 16], "the number of the job"),
            (|hosts| hosts.key_file = "k".into(), "no absolute path"),
            (|hosts| hosts.silence_ms = 0, "the time-out for silent hosts is zero"),
            (|hosts| hosts.hosts[1].name.clear(), "the name of host 1 has 0 bytes"),
            (|hosts| hosts.hosts[1].address.set_port(0), "not one of a host's port"),
            (|hosts| hosts.hosts[1].address = "[fe80::1]:7117".parse().unwrap(), "IPv6"),
            (|hosts| hosts.hosts[1].address = hosts.hosts[0].address, "a and b have one address"),
            (|hosts| hosts.hosts[1].dpdk = Some([0; 4].into()), "the address of b's DPDK port"),
            (
                |hosts| hosts.hosts[1].dpdk = Some([10, 0, 0, 1].into()),
                "b's DPDK port and a have one address",
            ),
            (|hosts| hosts.transport = TransportChoice::Dpdk, "a has no DPDK port"),
            (
                |hosts| {
                    hosts.transport = TransportChoice::Dpdk;
                    hosts.hosts[0].dpdk = Some([10, 0, 0, 101].into());
                },
                "b has no DPDK port, and a is to reach it by DPDK alone",
            ),
        ];
        for (change, part) in cases {
            let said = refused(change);
            assert!(said.contains(part), "{said}");
        }
        assert!(
            refused(|hosts| (hosts.hosts[0].ranks, hosts.hosts[1].ranks) = (u32::MAX, 1)).contains("ranks")
        );
    }

    #[test]
    fn the_largest_job_fits_into_a_message() {
        let host = |number: u32| JobHost {
            name: "n".repeat(MAX_NAME),
            address: format!("[2001:db8::{number:x}]:65535").parse().unwrap(),
            ranks: 1 << 23,
            dpdk: Some((0x0a00_0000 + number).into()),
        };
        let hosts = JobHosts {
            hosts: (0..MAX_HOSTS as u32).map(host).collect(),
            key_file: format!("/{}", "k".repeat(4096)),
            ..two()
        };
        assert_eq!(hosts.check("j"), Ok(()));
        let settings = crate::JobSettings::default();
        let request = crate::Request::CreateOnHosts {
            job: "j".repeat(128),
            settings,
            keep: false,
            hosts: Box::new(hosts),
        };
        assert_eq!(crate::decode::<crate::Request>(&crate::encode(&request).unwrap()).unwrap(), request);
    }
}
