//! Two network namespaces and a veth pair, made and removed by this program; leftovers of a run that was killed are removed
//! first.
use std::io;
use std::process::Command;

/// The namespaces; they go when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) mtu: usize,
}

fn ip(arguments: &str) -> io::Result<()> {
    let done = Command::new("ip").args(arguments.split(' ')).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ip {arguments}: {}", String::from_utf8_lossy(&done.stderr).trim())))
}

impl Namespaces {
    pub(crate) const NAMES: [&str; 2] = ["hectare-goodput-a", "hectare-goodput-b"];
    pub(crate) const ADDRESSES: [&str; 2] = ["10.98.0.1", "10.98.0.2"];

    pub(crate) fn make(mtu: usize) -> io::Result<Namespaces> {
        Self::remove();
        // From here on dropped, and so removed, if something fails.
        let namespaces = Namespaces { mtu };
        let [a, b] = Self::NAMES;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add name goodput netns {a} type veth peer name goodput netns {b}"))?;
        for (name, address) in Self::NAMES.iter().zip(Self::ADDRESSES) {
            ip(&format!("-n {name} addr add {address}/24 dev goodput"))?;
            ip(&format!("-n {name} link set goodput mtu {mtu} up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(namespaces)
    }

    fn remove() {
        for name in Self::NAMES {
            // It fails if there is none.
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        Self::remove();
    }
}
