//! libibverbs, loaded at run time.
use crate::error::Error;
use crate::ffi::{
    Channel, Gid, PairAttributes, PairSettings, PortAttributes, Queue, RawContext, RawDevice, RawDomain,
    RawPair, RawRegion,
};
use libc::{c_char, c_int, c_uint, c_void};
use std::ffi::CStr;
use std::sync::OnceLock;

/// Calls of libibverbs, by their names there without `ibv_`.
pub(crate) struct Library {
    pub(crate) get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut RawDevice,
    pub(crate) free_device_list: unsafe extern "C" fn(*mut *mut RawDevice),
    pub(crate) get_device_name: unsafe extern "C" fn(*mut RawDevice) -> *const c_char,
    pub(crate) open_device: unsafe extern "C" fn(*mut RawDevice) -> *mut RawContext,
    pub(crate) close_device: unsafe extern "C" fn(*mut RawContext) -> c_int,
    pub(crate) query_port: unsafe extern "C" fn(*mut RawContext, u8, *mut PortAttributes) -> c_int,
    pub(crate) query_gid: unsafe extern "C" fn(*mut RawContext, u8, c_int, *mut Gid) -> c_int,
    pub(crate) alloc_pd: unsafe extern "C" fn(*mut RawContext) -> *mut RawDomain,
    pub(crate) dealloc_pd: unsafe extern "C" fn(*mut RawDomain) -> c_int,
    pub(crate) reg_mr: unsafe extern "C" fn(*mut RawDomain, *mut c_void, usize, c_int) -> *mut RawRegion,
    pub(crate) dereg_mr: unsafe extern "C" fn(*mut RawRegion) -> c_int,
    pub(crate) create_comp_channel: unsafe extern "C" fn(*mut RawContext) -> *mut Channel,
    pub(crate) destroy_comp_channel: unsafe extern "C" fn(*mut Channel) -> c_int,
    pub(crate) create_cq:
        unsafe extern "C" fn(*mut RawContext, c_int, *mut c_void, *mut Channel, c_int) -> *mut Queue,
    pub(crate) destroy_cq: unsafe extern "C" fn(*mut Queue) -> c_int,
    pub(crate) get_cq_event: unsafe extern "C" fn(*mut Channel, *mut *mut Queue, *mut *mut c_void) -> c_int,
    pub(crate) ack_cq_events: unsafe extern "C" fn(*mut Queue, c_uint),
    pub(crate) create_qp: unsafe extern "C" fn(*mut RawDomain, *mut PairSettings) -> *mut RawPair,
    pub(crate) modify_qp: unsafe extern "C" fn(*mut RawPair, *mut PairAttributes, c_int) -> c_int,
    pub(crate) destroy_qp: unsafe extern "C" fn(*mut RawPair) -> c_int,
}

#[allow(clippy::missing_transmute_annotations, reason = "each field has the type")]
fn load() -> Result<Library, Error> {
    let no_library = || {
        // SAFETY: after a failed call of the loader, it is none or a string that ends with zero and stays until the next call.
        let why = unsafe {
            let text = libc::dlerror();
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        Error::NoLibrary { why }
    };
    // SAFETY: the name ends with zero. What the library does when it is loaded is registering its drivers.
    let handle = unsafe { libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(no_library());
    }
    let symbol = |name: &CStr, version: &CStr| {
        // SAFETY: the handle is open, and is never closed; both names end with zero.
        let found = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
        if found.is_null() { Err(no_library()) } else { Ok(found) }
    };
    macro_rules! call {
        ($name:literal) => {
            call!($name, c"IBVERBS_1.1")
        };
        ($name:literal, $version:literal) => {
            // SAFETY: the call of this name and version has these arguments, as `infiniband/verbs.h` says, and a function
            // pointer is a pointer.
            unsafe { std::mem::transmute::<*mut c_void, _>(symbol($name, $version)?) }
        };
    }
    Ok(Library {
        get_device_list: call!(c"ibv_get_device_list"),
        free_device_list: call!(c"ibv_free_device_list"),
        get_device_name: call!(c"ibv_get_device_name"),
        open_device: call!(c"ibv_open_device"),
        close_device: call!(c"ibv_close_device"),
        query_port: call!(c"ibv_query_port"),
        query_gid: call!(c"ibv_query_gid"),
        alloc_pd: call!(c"ibv_alloc_pd"),
        dealloc_pd: call!(c"ibv_dealloc_pd"),
        reg_mr: call!(c"ibv_reg_mr"),
        dereg_mr: call!(c"ibv_dereg_mr"),
        create_comp_channel: call!(c"ibv_create_comp_channel", c"IBVERBS_1.0"),
        destroy_comp_channel: call!(c"ibv_destroy_comp_channel", c"IBVERBS_1.0"),
        create_cq: call!(c"ibv_create_cq"),
        destroy_cq: call!(c"ibv_destroy_cq"),
        get_cq_event: call!(c"ibv_get_cq_event"),
        ack_cq_events: call!(c"ibv_ack_cq_events"),
        create_qp: call!(c"ibv_create_qp"),
        modify_qp: call!(c"ibv_modify_qp"),
        destroy_qp: call!(c"ibv_destroy_qp"),
    })
}

/// The library, loaded once.
pub(crate) fn library() -> Result<&'static Library, Error> {
    static LIBRARY: OnceLock<Result<Library, Error>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(Clone::clone)
}

/// The system's error number of the call before, which failed.
pub(crate) fn code() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The error of a call that has returned an error number, or -1.
pub(crate) fn check(call: &'static str, returned: c_int) -> Result<(), Error> {
    match returned {
        0 => Ok(()),
        -1 => Err(Error::Call { call, code: code() }),
        code => Err(Error::Call { call, code: code.abs() }),
    }
}
