//! DPDK's environment, which a process starts once.
use crate::error::Error;
use crate::ffi;
use std::ffi::{CString, c_char, c_int};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So much memory EAL gets unless it is told otherwise, in MiB: buffers of a few ports with jumbo frames.
const MEMORY: u64 = 256;

/// DPDK's environment runs in this process.
#[derive(Debug, Clone, Copy)]
pub struct Eal {
    _started: (),
}

/// The arguments and the outcome of the first start.
type Started = (Vec<String>, Result<(), Error>);

impl Eal {
    /// Starts the environment with EAL arguments, or finds that it runs with the same. It is started on a thread of its own, since
    /// EAL pins the thread that starts it.
    ///
    /// # Errors
    /// If it does not start, or has started with other arguments; after a failure always, as EAL cannot start twice.
    pub fn start(arguments: &[String]) -> Result<Eal, Error> {
        let mut started = started();
        if let Some((running, result)) = &*started {
            result.clone()?;
            if running != arguments {
                let (running, asked) = (running.clone(), arguments.to_vec());
                return Err(Error::OtherArguments { running, asked });
            }
            return Ok(Eal { _started: () });
        }
        Eal::start_first(&mut started, arguments)
    }

    /// Starts the environment with [`default_arguments`], or finds that it runs, with whatever arguments.
    ///
    /// # Errors
    /// If it does not start, or did not.
    pub fn start_by_default(device: &str) -> Result<Eal, Error> {
        let mut started = started();
        match &*started {
            Some((_, result)) => result.clone().map(|()| Eal { _started: () }),
            None => Eal::start_first(&mut started, &default_arguments(device)),
        }
    }

    fn start_first(started: &mut Option<Started>, arguments: &[String]) -> Result<Eal, Error> {
        let strings = checked(arguments)?;
        let result = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("dpdk".into());
            match thread.spawn_scoped(scope, || init(strings, arguments)) {
                Ok(thread) => thread.join().expect("starting EAL does not panic"),
                Err(error) => Err(Error::Arguments(format!("no thread to start it on: {error}"))),
            }
        });
        *started = Some((arguments.to_vec(), result.clone()));
        result.map(|()| Eal { _started: () })
    }
}

fn started() -> MutexGuard<'static, Option<Started>> {
    static STARTED: Mutex<Option<Started>> = Mutex::new(None);
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The arguments for C, with a name of the program before them.
fn checked(arguments: &[String]) -> Result<Vec<CString>, Error> {
    if let Some(help) = arguments.iter().find(|argument| matches!(argument.as_str(), "-h" | "--help")) {
        return Err(Error::Arguments(format!("`{help}` would end the program; see doc.dpdk.org")));
    }
    let strings = std::iter::once("hectare").chain(arguments.iter().map(String::as_str));
    strings
        .map(|text| {
            CString::new(text).map_err(|_| Error::Arguments(format!("{text:?} has a zero byte in it")))
        })
        .collect()
}

fn init(strings: Vec<CString>, arguments: &[String]) -> Result<(), Error> {
    // EAL moves the pointers about and may keep them, so that they are never given back; it happens once.
    let argc = c_int::try_from(strings.len()).map_err(|_| Error::Arguments("too many".into()))?;
    let mut pointers: Vec<*mut c_char> = strings.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    let pointers: &'static mut [*mut c_char] = Vec::leak(pointers);
    let lock = ffi::lock();
    let (code, log) = ffi::logged(&lock, || {
        // SAFETY: `argc` strings that end in zero and a null behind them, which live as long as the process; under the lock.
        unsafe { ffi::hd_start(argc, pointers.as_mut_ptr()) }
    });
    if code == 0 { Ok(()) } else { Err(Error::Start { code, arguments: arguments.to_vec(), log }) }
}

/// EAL arguments with which most devices work: one core, no files that other processes would find, huge pages if enough are free, and no
/// probing of the machine's cards but of `device`, if it is the address of one.
pub fn default_arguments(device: &str) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["-l".into(), first_core(), "--no-telemetry".into(), "-m".into(), MEMORY.to_string()].into();
    if free_huge_pages() >= MEMORY << 20 {
        arguments.push("--in-memory".into());
    } else {
        arguments.extend(["--no-huge".into(), "--no-shconf".into()]);
    }
    if is_pci(device) {
        arguments.extend(["-a".into(), device.into()]);
    } else {
        arguments.push("--no-pci".into());
    }
    // Notices of what is fine would come at every start.
    arguments.push("--log-level=warning".into());
    arguments
}

/// Whether a device begins with a PCI address: `0000:01:00.0`, or `01:00.0`.
fn is_pci(device: &str) -> bool {
    let address = device.split(',').next().unwrap_or_default();
    address.contains(':') && address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte))
}

/// The first processor that this process may run on.
fn first_core() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first: String = list.unwrap_or("0").trim().chars().take_while(char::is_ascii_digit).collect();
    if first.is_empty() { "0".into() } else { first }
}

/// The bytes of all free huge pages.
fn free_huge_pages() -> u64 {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return 0 };
    sizes
        .flatten()
        .filter_map(|size| {
            let name = size.file_name().into_string().ok()?;
            let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let free: u64 =
                fs::read_to_string(size.path().join("free_hugepages")).ok()?.trim().parse().ok()?;
            Some(free * kib * 1024)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_cards_are_known() {
        for card in ["0000:01:00.0", "01:00.0", "0000:01:00.0,arg=1"] {
            assert!(is_pci(card), "{card}");
        }
        for other in ["net_af_packet0,iface=eth0", "net_memif", "", "eth0:1"] {
            assert!(!is_pci(other), "{other}");
        }
    }

    #[test]
    fn only_the_card_that_is_meant_is_probed() {
        assert!(default_arguments("net_tap0").contains(&"--no-pci".to_owned()));
        let card = default_arguments("0000:01:00.0");
        assert!(
            card.windows(2).any(|pair| pair == ["-a", "0000:01:00.0"]) && !card.contains(&"--no-pci".into())
        );
    }

    #[test]
    fn arguments_that_would_end_the_program_are_refused() {
        let error = checked(&["--help".into()]).unwrap_err().to_string();
        assert!(error.contains("--help"), "{error}");
        let error = checked(&["a\0b".into()]).unwrap_err().to_string();
        assert!(error.contains("zero byte"), "{error}");
    }
}
