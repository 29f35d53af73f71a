//! Devices, their addresses, and domains: what may be used together.
use crate::error::Error;
use crate::ffi::{
    Channel, Gid, LINK_ETHERNET, PORT_ACTIVE, PortAttributes, RawContext, RawDevice, RawDomain,
};
use crate::library::{Library, check, code, library};
use std::ffi::CStr;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::rc::Rc;

/// The port that is used.
pub(crate) const PORT: u8 = 1;

/// An open device, of whose first port one address is used.
#[derive(Clone)]
pub struct Device(pub(crate) Rc<Opened>);

pub(crate) struct Opened {
    pub(crate) library: &'static Library,
    pub(crate) context: NonNull<RawContext>,
    /// Tells of completions of all its queues.
    pub(crate) channel: NonNull<Channel>,
    name: String,
    pub(crate) gid: [u8; 16],
    pub(crate) gid_index: u8,
    pub(crate) lid: u16,
    pub(crate) mtu: u8,
    pub(crate) is_ethernet: bool,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.0.name).field("gid", &self.address()).finish()
    }
}

/// The list of devices, while it is needed.
struct List {
    library: &'static Library,
    start: *mut *mut RawDevice,
    count: usize,
}

impl List {
    fn get(library: &'static Library) -> Result<List, Error> {
        let mut count = 0;
        // SAFETY: `count` is writable.
        let start = unsafe { (library.get_device_list)(&mut count) };
        if start.is_null() {
            // ENOSYS: the kernel knows no such devices.
            return match code() {
                libc::ENOSYS | libc::ENODEV | libc::ENOENT => {
                    Err(Error::NoDevice { asked: None, found: Vec::new() })
                }
                code => Err(Error::Call { call: "ibv_get_device_list", code }),
            };
        }
        Ok(List { library, start, count: usize::try_from(count).unwrap_or(0) })
    }

    fn devices(&self) -> impl Iterator<Item = (*mut RawDevice, String)> {
        (0..self.count).map(|at| {
            // SAFETY: the list has `count` devices, of which each has a name that ends with zero, and lives as long as `self`.
            unsafe {
                let device = *self.start.add(at);
                let name = CStr::from_ptr((self.library.get_device_name)(device));
                (device, name.to_string_lossy().into_owned())
            }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: it was gotten and not freed. Open devices stay open.
        unsafe { (self.library.free_device_list)(self.start) };
    }
}

impl Device {
    /// The names of the devices of this host.
    ///
    /// # Errors
    /// [`Error::NoLibrary`], [`Error::NoDevice`] if the kernel knows no RDMA.
    pub fn names() -> Result<Vec<String>, Error> {
        Ok(List::get(library()?)?.devices().map(|(_, name)| name).collect())
    }

    /// Opens the device of this name, or the first one that has the address `at`. On RoCE, peers reach it by the GID of `at`,
    /// or of the first IP address of its interface if it has no such.
    ///
    /// # Errors
    /// If there is no such device, it does not open, or its first port has no link or no address.
    pub fn open(name: Option<&str>, at: Option<IpAddr>) -> Result<Device, Error> {
        let library = library()?;
        let list = List::get(library)?;
        let found: Vec<String> = list.devices().map(|(_, name)| name).collect();
        let mut failed = Error::NoDevice { asked: name.map(str::to_owned), found };
        let (mut best, is_named) = (None, name.is_some());
        for (raw, own) in list.devices().filter(|(_, own)| name.is_none_or(|name| name == own)) {
            match Opened::open(library, raw, own, at) {
                Ok((opened, is_at)) if is_at || is_named || at.is_none() => {
                    return Ok(Device(Rc::new(opened)));
                }
                Ok((opened, _)) => best = best.or(Some(opened)),
                Err(error) => failed = error,
            }
        }
        best.map(|opened| Device(Rc::new(opened))).ok_or(failed)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The GID by which peers reach it.
    #[must_use]
    pub fn address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.0.gid)
    }

    /// Readable when a queue that was armed has a completion.
    ///
    /// # Errors
    /// The system's, if it has no more descriptors.
    pub fn event_descriptor(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        // SAFETY: the channel is there as long as the device, and its descriptor open as long.
        let fd = unsafe { BorrowedFd::borrow_raw(self.0.channel.as_ref().fd) };
        fd.as_fd().try_clone_to_owned()
    }

    /// Takes the events that there are, so that its descriptor is not readable any more. Queues are to be armed and looked at
    /// again.
    pub fn take_events(&self) {
        let Opened { library, channel, .. } = &*self.0;
        loop {
            let (mut queue, mut of_program) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the channel is there; its descriptor does not block, so that this fails if there is no event. Each event is of
            // a queue that is not destroyed before all its events were acknowledged, which is done here.
            unsafe {
                if (library.get_cq_event)(channel.as_ptr(), &mut queue, &mut of_program) != 0 {
                    return;
                }
                (library.ack_cq_events)(queue, 1);
            }
        }
    }
}

impl Opened {
    /// Opens a device; also whether it has the address `at`.
    fn open(
        library: &'static Library,
        raw: *mut RawDevice,
        name: String,
        at: Option<IpAddr>,
    ) -> Result<(Opened, bool), Error> {
        // SAFETY: the device is one of the list, which is not freed yet.
        let context = unsafe { (library.open_device)(raw) };
        let Some(context) = NonNull::new(context) else {
            return Err(Error::Open { device: name, code: code() });
        };
        // SAFETY: the device is open.
        let channel = unsafe { (library.create_comp_channel)(context.as_ptr()) };
        let Some(channel) = NonNull::new(channel) else {
            let error = Error::Call { call: "ibv_create_comp_channel", code: code() };
            // SAFETY: it is open, and nothing uses it.
            unsafe { (library.close_device)(context.as_ptr()) };
            return Err(error);
        };
        let (gid, gid_index, lid, mtu, is_ethernet) = ([0; 16], 0, 0, 1, true);
        // Closed again from here on, however this ends.
        let mut opened = Opened { library, context, channel, name, gid, gid_index, lid, mtu, is_ethernet };
        opened.do_not_block()?;
        let is_at = opened.find_address(at)?;
        Ok((opened, is_at))
    }

    fn do_not_block(&self) -> Result<(), Error> {
        // SAFETY: the channel's descriptor is open, and its flags are whoever's who made it.
        let done = unsafe {
            let fd = self.channel.as_ref().fd;
            let flags = libc::fcntl(fd, libc::F_GETFL);
            flags >= 0 && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) >= 0
        };
        if done { Ok(()) } else { Err(Error::Call { call: "fcntl", code: code() }) }
    }

    /// Finds the port's address; whether it is `at`.
    fn find_address(&mut self, at: Option<IpAddr>) -> Result<bool, Error> {
        let mut port = PortAttributes::default();
        // SAFETY: the device is open, `port` is writable and larger than what the call writes.
        check("ibv_query_port", unsafe {
            (self.library.query_port)(self.context.as_ptr(), PORT, &mut port)
        })?;
        if port.state != PORT_ACTIVE {
            return Err(Error::PortDown { device: self.name.clone() });
        }
        self.is_ethernet = port.link_layer == LINK_ETHERNET;
        (self.lid, self.mtu) = (port.lid, u8::try_from(port.active_mtu).unwrap_or(1).clamp(1, 5));
        if !self.is_ethernet {
            self.gid = self.query_gid(0).unwrap_or_default();
            return Ok(false);
        }
        let wanted = at.map(|at| match at {
            IpAddr::V4(at) => at.to_ipv6_mapped(),
            IpAddr::V6(at) => at,
        });
        // A GID and its index, by how good it is.
        let mut best: Option<(_, ([u8; 16], u8))> = None;
        for index in 0..u8::try_from(port.gids).unwrap_or(u8::MAX) {
            let Some(gid) = self.query_gid(index).filter(|gid| *gid != [0; 16] && self.is_routable(index))
            else {
                continue;
            };
            let address = Ipv6Addr::from(gid);
            let is_at = Some(address) == wanted;
            // One of IPv4 before one of IPv6; those of the link alone last.
            let rank = (is_at, address.to_ipv4_mapped().is_some(), !address.is_unicast_link_local());
            if best.is_none_or(|(other, _)| rank > other) {
                best = Some((rank, (gid, index)));
            }
        }
        let Some((rank, (gid, index))) = best else {
            let wanted = at.map_or_else(|| "RoCE version 2".into(), |at| at.to_string());
            return Err(Error::NoGid { device: self.name.clone(), wanted });
        };
        (self.gid, self.gid_index) = (gid, index);
        Ok(rank.0)
    }

    fn query_gid(&self, index: u8) -> Option<[u8; 16]> {
        let mut gid = Gid::default();
        // SAFETY: the device is open, `gid` is writable.
        let done = unsafe { (self.library.query_gid)(self.context.as_ptr(), PORT, index.into(), &mut gid) };
        (done == 0).then_some(gid.0)
    }

    /// Whether a GID is one of RoCE version 2, which is UDP; those of version 1 have the same addresses.
    fn is_routable(&self, index: u8) -> bool {
        let at = format!("/sys/class/infiniband/{}/ports/{PORT}/gid_attrs/types/{index}", self.name);
        std::fs::read_to_string(at).is_ok_and(|kind| kind.trim() == "RoCE v2")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: whatever belongs to the device has a share of it, and is gone.
        unsafe {
            (self.library.destroy_comp_channel)(self.channel.as_ptr());
            (self.library.close_device)(self.context.as_ptr());
        }
    }
}

/// Registered memory and queue pairs that may be used together: those of one peer.
#[derive(Clone)]
pub struct Domain(pub(crate) Rc<Allocated>);

pub(crate) struct Allocated {
    pub(crate) device: Rc<Opened>,
    pub(crate) raw: NonNull<RawDomain>,
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("device", &self.0.device.name).finish()
    }
}

impl Domain {
    /// A domain of a device.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn new(device: &Device) -> Result<Domain, Error> {
        // SAFETY: the device is open.
        let raw = unsafe { (device.0.library.alloc_pd)(device.0.context.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::Call { call: "ibv_alloc_pd", code: code() })?;
        Ok(Domain(Rc::new(Allocated { device: device.0.clone(), raw })))
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: regions and pairs of it have a share of it, and are gone.
        unsafe { (self.device.library.dealloc_pd)(self.raw.as_ptr()) };
    }
}
