//! The version of the interface.
use crate::status::{Failure, enter, ha_status, ha_status::*};
use std::ffi::c_char;

/// The version of this interface. Its major part, `HA_ABI_VERSION / 1000`, is the number of the shared library
/// (`libhectare.so.0`) and changes when a program has to be compiled again; the rest grows with what is added.
pub const HA_ABI_VERSION: u32 = 6;

/// The version of the library, such as "0.1.0"; static text.
///
/// Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn ha_library_version() -> *const c_char {
    const VERSION: &std::ffi::CStr =
        match std::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => panic!("the version has no zero byte"),
        };
    VERSION.as_ptr()
}

/// Whether a program that was compiled with this version of the header can use this library: call it as
/// `ha_check_abi(HA_ABI_VERSION)`. The soname checks the same for programs that are linked; those that load the library with `dlopen` should call this first.
///
/// Thread: any.
/// Fails: `HA_ABI_MISMATCH` if the major versions differ, or the header is newer than the library.
#[unsafe(no_mangle)]
pub extern "C" fn ha_check_abi(header_version: u32) -> ha_status {
    enter(|| {
        if header_version / 1000 == HA_ABI_VERSION / 1000 && header_version <= HA_ABI_VERSION {
            return Ok(());
        }
        let text = format!(
            "compiled with version {header_version} of the header, this library has version {HA_ABI_VERSION}"
        );
        Err(Failure::new(HA_ABI_MISMATCH, text))
    })
}
