//! The wall clock of this program in all its roles: that of the system, and so much more as a file says.
//!
//! A process's wall clock cannot be set without that of all others. So this program has a `clock_gettime` of its own, which the
//! standard library calls instead of the C library's. Besides `system.rs`, the only file with `unsafe` in it.
use crate::system::Scratch;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

/// The variable that names the file: eight bytes, the seconds.
pub(crate) const VARIABLE: &str = "FAULTS_CLOCK";

static SHIFT: OnceLock<Scratch> = OnceLock::new();

/// Follows the file that the environment names, if it names one.
pub(crate) fn follow() -> io::Result<()> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let file = std::fs::File::options().read(true).write(true).open(path)?;
        let _ = SHIFT.set(Scratch::map(file.as_fd(), 8)?);
    }
    Ok(())
}

/// Has the clocks of those who follow the file differ by so many seconds, at once.
pub(crate) fn set(path: &Path, seconds: i64) -> io::Result<()> {
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    file.set_len(8)?;
    Scratch::map(file.as_fd(), 8)?.store(0, seconds as u64);
    Ok(())
}

type Real = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// The C library's.
fn real() -> Option<Real> {
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: a plain call with a valid string; what it finds under this name is such a function.
        unsafe {
            let found = libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, Real>(found))
        }
    })
}

/// As the C library's, but for the wall clock.
///
/// # Safety
/// `time` is a place for a time.
// SAFETY: it does what the C library's function of this name does, for who calls it by that name.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    let Some(real) = real() else { return -1 };
    // SAFETY: the caller's contract.
    unsafe {
        let code = real(clock, time);
        if code == 0
            && clock == libc::CLOCK_REALTIME
            && let Some(shift) = SHIFT.get()
        {
            (*time).tv_sec += shift.load(0) as i64;
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant, SystemTime};

    #[test]
    fn the_wall_clock_jumps_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("hectare-faults-clock-{}", std::process::id()));
        set(&path, 0).unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        SHIFT.set(Scratch::map(file.as_fd(), 8).unwrap()).unwrap();
        let (wall, steady) = (SystemTime::now(), Instant::now());
        set(&path, -7200).unwrap();
        let back = wall.duration_since(SystemTime::now()).unwrap();
        assert!(back > Duration::from_secs(7000), "{back:?}");
        set(&path, 7200).unwrap();
        let on = SystemTime::now().duration_since(wall).unwrap();
        assert!(on >= Duration::from_secs(7200), "{on:?}");
        assert!(steady.elapsed() < Duration::from_secs(3600));
        std::fs::remove_file(&path).unwrap();
    }
}
