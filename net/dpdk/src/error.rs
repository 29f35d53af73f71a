//! Failures, and the advice for each.
use std::fmt;
use std::io;

/// The step at which opening a port failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No driver took the device.
    Probe,
    /// The driver took it, but made no port.
    Find,
    /// Somebody in this process has it.
    Own,
    /// The driver does not tell what it can do.
    Info,
    /// Buffers or MTU are larger than DPDK knows.
    Room,
    /// There is no memory for the buffers.
    Pool,
    /// The driver refused one queue in each direction.
    Configure,
    /// The driver refused the MTU.
    Mtu,
    /// The driver refused the receive queue.
    Receive,
    /// The driver refused the send queue.
    Send,
    /// The port does not start.
    Start,
    /// The port has no hardware address.
    Address,
}

impl Step {
    /// The step with the number that the shim has for it.
    pub(crate) fn from_number(number: i32) -> Step {
        use Step::*;
        [Probe, Find, Own, Info, Room, Pool, Configure, Mtu, Receive, Send, Start, Address]
            [usize::try_from(number - 1).expect("the shim numbers its steps from 1")]
    }

    fn text(self) -> &'static str {
        match self {
            Step::Probe => "no driver takes it",
            Step::Find => "its driver has made no Ethernet port",
            Step::Own => "a transport of this process has it already",
            Step::Info => "its driver does not describe it",
            Step::Room => "its frames would be larger than DPDK's buffers can be",
            Step::Pool => "no memory for its buffers",
            Step::Configure => "its driver refuses one queue in each direction",
            Step::Mtu => "its driver refuses the MTU",
            Step::Receive => "its driver refuses the receive queue",
            Step::Send => "its driver refuses the send queue",
            Step::Start => "it does not start",
            Step::Address => "it has no hardware address",
        }
    }

    /// The advice for it.
    fn advice(self) -> &'static str {
        match self {
            Step::Probe => {
                "is the interface or PCI address right, is it bound to vfio-pci if it is a card, and has the process \
                 CAP_NET_RAW and CAP_NET_ADMIN if it is net_af_packet?"
            }
            Step::Pool => "give EAL more memory (`-m`, or more huge pages)",
            Step::Own => "name another device, or end the other transport",
            Step::Mtu | Step::Room => "choose a smaller MTU",
            _ => "the driver's documentation at doc.dpdk.org/guides/nics says what it needs",
        }
    }
}

/// Why there is no environment, or no port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The arguments cannot be given to EAL.
    Arguments(String),
    /// EAL did not start. A process cannot try again.
    Start {
        /// The system's error number.
        code: i32,
        /// The arguments.
        arguments: Vec<String>,
        /// DPDK's log meanwhile.
        log: String,
    },
    /// EAL runs in this process, with other arguments.
    OtherArguments {
        /// The arguments that it runs with.
        running: Vec<String>,
        /// The arguments that were asked for.
        asked: Vec<String>,
    },
    /// A device cannot be used.
    Open {
        /// Its name, as DPDK was given it.
        device: String,
        /// The step that failed.
        step: Step,
        /// The system's error number.
        code: i32,
        /// DPDK's log meanwhile.
        log: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Arguments(why) => write!(f, "EAL arguments: {why}"),
            Error::Start { code, arguments, log } => {
                let (cause, arguments) = (io::Error::from_raw_os_error(*code), arguments.join(" "));
                write!(f, "DPDK's environment does not start with the EAL arguments `{arguments}`: {cause}")?;
                said(f, log)
            }
            Error::OtherArguments { running, asked } => write!(
                f,
                "DPDK's environment runs in this process with the EAL arguments `{}` and cannot be started again \
                 with `{}`: give all transports of a process the same",
                running.join(" "),
                asked.join(" ")
            ),
            Error::Open { device, step, code, log } => {
                let cause = io::Error::from_raw_os_error(*code);
                write!(f, "DPDK device `{device}`: {} ({cause}); {}", step.text(), step.advice())?;
                said(f, log)
            }
        }
    }
}

/// The end of what DPDK said: its last lines name the cause.
fn said(f: &mut fmt::Formatter<'_>, log: &str) -> fmt::Result {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    write!(f, "; DPDK says: {}", lines[lines.len().saturating_sub(4)..].join(" | "))
}

impl std::error::Error for Error {}
