//! The segment: a sparse memfd, sealed in size, mapped once per process.
use super::layout::{
    AreaSlot, Chunk, Config, HUGE, Header, HostName, LAYOUT_VERSION, MAGIC, MAX_WANTED, Map, Mark, Marks,
    ObserverRecord, PAGE, PlanEntry, WantedWords, WorkerRecord,
};
use crate::error::Error;
use crate::memory::mutex::RobustMutex;
use crate::memory::process_limits::{check_file_size, no_address_space};
use crate::protocol::doorbell::Doorbell;
use crate::protocol::index::Index;
use crate::protocol::ownership::OwnershipWord;
use crate::protocol::remote_clocks::{HostRecord, RemoteClocks};
use crate::protocol::round::{Rounds, Seat, slot_state};
use crate::segment::tally::Tally;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// One process's mapping of a job's segment.
#[derive(Debug)]
pub(crate) struct Segment {
    base: *mut u8,
    len: usize,
    map: Map,
    config: Config,
    fd: OwnedFd,
    /// Tells whether this is the process that made the mapping.
    pub(crate) canary: &'static AtomicU32,
}

// SAFETY: everything reachable through the mapping is atomics, robust mutexes, or area memory whose access
// the protocols of `area` and `sync` order; `base`, `len`, `map`, `config` and `fd` never change.
unsafe impl Send for Segment {}
// SAFETY: as for Send.
unsafe impl Sync for Segment {}

/// Makes the error of a system call.
pub(crate) fn failed(call: &'static str) -> impl FnOnce(Errno) -> Error {
    move |error| Error::Os { call, source: error.into() }
}

/// Bytes of memory behind a descriptor at this moment.
pub(crate) fn resident_bytes(fd: &OwnedFd) -> Result<u64, Error> {
    Ok(fstat(fd).map_err(failed("fstat"))?.st_blocks as u64 * 512)
}

impl Segment {
    /// Makes the segment of a new job; `ranks`: how many each of its hosts has, if it is on several.
    pub(crate) fn create(config: Config, ranks: &[u32]) -> Result<Segment, Error> {
        let too_large = || Error::InvalidConfig {
            what: "reserve_bytes or a table size overflows the address space".into(),
        };
        let map = Map::of(&config).ok_or_else(too_large)?;
        check_file_size(map.end)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("hectare", flags).map_err(failed("memfd_create"))?;
        i64::try_from(map.end).map_err(|_| too_large())?;
        ftruncate(&fd, map.end).map_err(failed("ftruncate"))?;
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&fd, seals).map_err(failed("fcntl(F_ADD_SEALS)"))?;
        let segment = Segment::map(fd, map, config)?;
        segment.initialize(ranks);
        Ok(segment)
    }

    /// Maps the segment behind a descriptor that another process passed on.
    pub(crate) fn open(fd: OwnedFd) -> Result<Segment, Error> {
        let (map, config) = Segment::inspect(fd.as_fd())?;
        Segment::map(fd, map, config)
    }

    fn map(fd: OwnedFd, map: Map, config: Config) -> Result<Segment, Error> {
        let len = usize::try_from(map.end).map_err(|_| Error::InvalidConfig {
            what: format!("{} bytes do not fit the address space", map.end),
        })?;
        let huge = HUGE as usize;
        // SAFETY: reserves fresh address space, then replaces a 2 MiB-aligned part of it, which nobody uses
        // yet, by the mapping; what the reservation has beyond it is given back.
        let base = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let reserved = mmap_anonymous(std::ptr::null_mut(), len + huge, ProtFlags::empty(), flags)
                .map_err(|error| {
                    no_address_space("mmap of the reserved range", (len + huge) as u64, error)
                })?;
            let start = reserved as usize;
            let aligned = start.next_multiple_of(huge);
            let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
            let prot = ProtFlags::READ | ProtFlags::WRITE;
            let base = mmap(aligned as *mut _, len, prot, flags, &fd, 0).map_err(|error| {
                let _ = munmap(reserved, len + huge);
                no_address_space("mmap of the segment", len as u64, error)
            })?;
            // Nothing depends on whether these are granted.
            if aligned > start {
                let _ = munmap(reserved, aligned - start);
            }
            let _ = munmap((aligned + len) as *mut _, start + huge - aligned);
            let _ = madvise(base, len, Advice::LinuxDontFork);
            base.cast::<u8>()
        };
        crate::memory::fork::keep_place(base, len);
        Ok(Segment { base, len, map, config, fd, canary: crate::memory::fork::canary() })
    }

    fn initialize(&self, ranks: &[u32]) {
        // SAFETY: the segment was just made: its memory is zero, which is valid for every type in it, and
        // nobody else has its descriptor yet.
        unsafe {
            let header = self.base.cast::<Header>();
            (*header).config = self.config;
            (*header).map = self.map;
            RobustMutex::init(&raw const (*header).directory);
            RobustMutex::init(&raw const (*header).membership);
            RobustMutex::init(&raw const (*header).agent.life);
            for record in self.workers() {
                RobustMutex::init(&raw const record.life);
            }
            for record in self.observers() {
                RobustMutex::init(&raw const record.life);
            }
        }
        let header = self.header();
        header.sync.word.store(
            crate::protocol::word::RoundWord::new(1, crate::protocol::word::Phase::Idle).0,
            Ordering::Relaxed,
        );
        header.sync.next_due_ns.store(u64::MAX, Ordering::Relaxed);
        self.place_hosts(ranks);
        header.layout_version.store(LAYOUT_VERSION, Ordering::Relaxed);
        // Relaxed: nobody else has the segment before its descriptor is handed on.
        header.magic.store(MAGIC, Ordering::Relaxed);
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn map_of_tables(&self) -> &Map {
        &self.map
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Bytes of memory behind the segment at this moment.
    pub(crate) fn resident_bytes(&self) -> Result<u64, Error> {
        resident_bytes(&self.fd)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header, and lives as long as `self`.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// A table of the segment.
    ///
    /// # Safety
    /// `map` (checked against the file's size when the segment was mapped) has `count` values of `T` at
    /// `offset`, and `T` is valid for any bytes and changed only through atomics.
    unsafe fn table<T>(&self, offset: u64, count: usize) -> &[T] {
        // SAFETY: by the contract above; tables are page-aligned.
        unsafe { std::slice::from_raw_parts(self.base.add(offset as usize).cast::<T>(), count) }
    }

    /// Worker seats, for ranks that have ever been taken.
    #[inline]
    pub(crate) fn seats(&self) -> &[Seat] {
        // SeqCst: see `Rounds::seats`.
        let high = self.header().sync.workers_high.load(Ordering::SeqCst).min(self.config.max_workers);
        // SAFETY: `Map::of` places `max_workers` seats there.
        unsafe { self.table(self.map.seats, high as usize) }
    }

    #[inline]
    pub(crate) fn all_seats(&self) -> &[Seat] {
        // SAFETY: `Map::of` places `max_workers` seats there.
        unsafe { self.table(self.map.seats, self.config.max_workers as usize) }
    }

    /// The hosts of the job, if it is on several.
    #[inline]
    pub(crate) fn remote_clocks(&self) -> RemoteClocks<'_> {
        // SAFETY: `Map::of` places `hosts` records there.
        let hosts: &[HostRecord] = unsafe { self.table(self.map.hosts, self.config.hosts as usize) };
        RemoteClocks { hosts, here: self.config.here as usize }
    }

    /// The names of the job's hosts.
    pub(crate) fn host_names(&self) -> &[HostName] {
        // SAFETY: `Map::of` places `hosts` names there.
        unsafe { self.table(self.map.host_names, self.config.hosts as usize) }
    }

    /// The name of a host in errors.
    #[cold]
    pub(crate) fn host_text(&self, host: Option<usize>) -> String {
        match host.and_then(|host| Some((host, self.host_names().get(host)?))) {
            Some((host, name)) => name.text(host),
            None => "unknown".into(),
        }
    }

    /// Whether the job is on several hosts.
    #[inline]
    pub(crate) fn spans_hosts(&self) -> bool {
        self.config.hosts > 1
    }

    /// The ranks of a host of the job.
    pub(crate) fn ranks_of(&self, host: usize) -> Range<u32> {
        let record = &self.remote_clocks().hosts[host];
        // Relaxed: they do not change.
        let first = record.first.load(Ordering::Relaxed);
        first..first + record.ranks.load(Ordering::Relaxed)
    }

    /// The ranks that workers of this host may have.
    pub(crate) fn ranks_here(&self) -> Range<u32> {
        if self.config.hosts == 0 {
            0..self.config.max_workers
        } else {
            self.ranks_of(self.config.here as usize)
        }
    }

    /// The host of a rank that is of another host.
    pub(crate) fn host_of(&self, rank: u32) -> Option<usize> {
        let (hosts, here) = (0..self.config.hosts as usize, self.config.here as usize);
        hosts.filter(|host| *host != here).find(|host| self.ranks_of(*host).contains(&rank))
    }

    /// The host of the owner of an area of another host, as far as it is known.
    pub(crate) fn owner_host(&self, word: OwnershipWord) -> Option<usize> {
        word.left_to().map_or(word.host(), |rank| self.host_of(rank))
    }

    /// The clock of a rank: of one of another host, its host's.
    pub(crate) fn clock_of(&self, rank: u32) -> u64 {
        let clock = match self.host_of(rank) {
            Some(host) => &self.remote_clocks().hosts[host].clock,
            None => &self.all_seats()[rank as usize].clock,
        };
        clock.load(Ordering::Relaxed)
    }

    /// The seats of all ranks that there are, or were, those of other hosts too.
    pub(crate) fn seats_of_all_hosts(&self) -> &[Seat] {
        &self.all_seats()[..self.seats().len().max(self.hosts_end() as usize)]
    }

    /// One past the last rank of the job's hosts.
    pub(crate) fn hosts_end(&self) -> u32 {
        (0..self.config.hosts as usize).map(|host| self.ranks_of(host).end).max().unwrap_or(0)
    }

    /// Writes the hosts of a segment that was just made; `ranks` says how many ranks each has.
    fn place_hosts(&self, ranks: &[u32]) {
        let mut first = 0;
        for (host, (record, ranks)) in self.remote_clocks().hosts.iter().zip(ranks).enumerate() {
            record.first.store(first, Ordering::Relaxed);
            record.ranks.store(*ranks, Ordering::Relaxed);
            if *ranks == 0 {
                record.clock.store(u64::MAX, Ordering::Relaxed);
            }
            let seats = &self.all_seats()[first as usize..][..*ranks as usize];
            if host != self.config.here as usize {
                seats.iter().for_each(|seat| seat.set_state(slot_state::ABSENT));
            }
            first += ranks;
        }
    }

    pub(crate) fn workers(&self) -> &[WorkerRecord] {
        // SAFETY: `Map::of` places `max_workers` records there.
        unsafe { self.table(self.map.workers, self.config.max_workers as usize) }
    }

    /// The counts of each rank, and in the last place those of reapers.
    #[inline]
    pub(crate) fn tallies(&self) -> &[Tally] {
        // SAFETY: `Map::of` places `max_workers + 1` tallies there.
        unsafe { self.table(self.map.tallies, self.config.max_workers as usize + 1) }
    }

    pub(crate) fn observers(&self) -> &[ObserverRecord] {
        // SAFETY: `Map::of` places `max_observers` records there.
        unsafe { self.table(self.map.observers, self.config.max_observers as usize) }
    }

    /// The pins of observer `index`.
    pub(crate) fn pins(&self, index: usize) -> &[AtomicU64] {
        let per = self.config.pins_per_observer as usize;
        // SAFETY: `Map::of` places `max_observers * pins_per_observer` words there; `index` is an observer.
        unsafe { &self.table(self.map.pins, self.config.max_observers as usize * per)[index * per..][..per] }
    }

    #[inline]
    pub(crate) fn areas(&self) -> &[AreaSlot] {
        // SAFETY: `Map::of` places `max_areas` slots there.
        unsafe { self.table(self.map.areas, self.config.max_areas as usize) }
    }

    /// The group of the area in slot `index`; 0 for none.
    pub(crate) fn group_of(&self, index: u32) -> u32 {
        self.areas()[index as usize].about.group.load(Ordering::Relaxed)
    }

    /// Area slots that have ever been taken.
    pub(crate) fn used_areas(&self) -> usize {
        // Acquire: pairs with the release of who takes a new slot.
        self.header().sync.areas_high.load(Ordering::Acquire).min(self.config.max_areas) as usize
    }

    /// The marks for rounds, 64 areas at a time.
    #[inline]
    pub(crate) fn marks(&self) -> &[Marks] {
        // SAFETY: `Map::of` places marks for `max_areas` areas there.
        unsafe { self.table(self.map.marks, self.config.max_areas.div_ceil(64) as usize) }
    }

    /// Whether the owner of an area wrote something that is not published.
    #[inline]
    pub(crate) fn dirty(&self, area: usize) -> Mark<'_> {
        Mark::new(&self.marks()[area / 64].dirty, area)
    }

    /// Whether an area is to be published in the next round.
    #[inline]
    pub(crate) fn forced(&self, area: usize) -> Mark<'_> {
        Mark::new(&self.marks()[area / 64].forced, area)
    }

    pub(crate) fn plan_entries(&self) -> &[PlanEntry] {
        // SAFETY: `Map::of` places `max_areas` entries there.
        unsafe { self.table(self.map.plan_entries, self.config.max_areas as usize) }
    }

    pub(crate) fn plan_chunks(&self) -> &[Chunk] {
        // SAFETY: `Map::of` places `max_chunks` chunks there.
        unsafe { self.table(self.map.plan_chunks, self.map.max_chunks as usize) }
    }

    /// The bytes of a name table's row; written under the directory mutex only.
    pub(crate) fn name_row(&self, groups: bool, index: usize) -> &[AtomicU8] {
        let (start, row) =
            (if groups { self.map.groups } else { self.map.names }, self.config.max_name_bytes as usize);
        // SAFETY: `Map::of` places `max_areas` rows of `max_name_bytes` there.
        unsafe { &self.table(start, self.config.max_areas as usize * row)[index * row..][..row] }
    }

    /// The way by which news come to the agent.
    #[inline]
    pub(crate) fn doorbell(&self) -> Doorbell<'_> {
        let header = self.header();
        header.agent.doorbell(&header.sync.published)
    }

    /// A name that is wanted, and what is said of it; used under the directory mutex only.
    pub(crate) fn wanted_row(&self, index: usize) -> (&[AtomicU8], &WantedWords) {
        let row = self.config.max_name_bytes as usize;
        // SAFETY: `Map::of` places `MAX_WANTED` rows of `max_name_bytes` there.
        let names = unsafe { self.table(self.map.wanted, MAX_WANTED * row) };
        // SAFETY: `Map::of` places `MAX_WANTED` of them there.
        let words = unsafe { self.table(self.map.wanted_words, MAX_WANTED) };
        (&names[index * row..][..row], &words[index])
    }

    /// The index of names.
    pub(crate) fn index(&self) -> Index<'_> {
        // SAFETY: `Map::of` places `index_cells` words there.
        Index::new(unsafe { self.table(self.map.index, self.map.index_cells as usize) })
    }

    /// Empties the index of names; under the directory mutex.
    pub(crate) fn clear_index(&self) {
        let len = (self.map.index_cells * 4).next_multiple_of(PAGE);
        // A table has pages of its own, and one that has memory no more is zero: what was never used stays so.
        if let Err(error) = crate::memory::limits::punch(self.fd(), self.map.index, len) {
            tracing::warn!(%error, "the index of names keeps old entries");
        }
    }

    /// The stack of free area slots; used under the directory mutex only.
    pub(crate) fn free_slots(&self) -> &[AtomicU32] {
        // SAFETY: `Map::of` places `max_areas` words there.
        unsafe { self.table(self.map.free_slots, self.config.max_areas as usize) }
    }

    /// The queue of deleted areas, a ring; used under the directory mutex only.
    pub(crate) fn deleted(&self) -> &[AtomicU32] {
        // SAFETY: `Map::of` places `max_areas` words there.
        unsafe { self.table(self.map.deleted, self.config.max_areas as usize) }
    }

    /// The storage of the heap's free list, or of that of memory that was reserved ahead, and how many extents it has;
    /// used under the directory mutex only.
    pub(crate) fn extents(&self, backed: bool) -> (*mut crate::memory::allocator::Extent, usize) {
        let map = &self.map;
        let (at, count) = if backed { (map.backed, map.max_backed) } else { (map.extents, map.max_extents) };
        // SAFETY: `Map::of` places `count` extents there.
        (unsafe { self.base.add(at as usize).cast() }, count as usize)
    }

    /// The words of the round.
    #[inline]
    pub(crate) fn rounds(&self) -> Rounds<'_> {
        let sync = &self.header().sync;
        Rounds {
            word: &sync.word,
            actor: &sync.acting.actor,
            completed: &sync.acting.completed,
            partial: &sync.acting.partial,
            all_seats: self.all_seats(),
            seats_high: &sync.workers_high,
        }
    }

    /// The address of `offset`, which lies in the heap with at least `len` bytes behind it.
    pub(crate) fn heap_at(&self, offset: u64, len: u64) -> *mut u8 {
        let end = offset.checked_add(len).expect("offset overflows");
        assert!(offset >= self.map.heap && end <= self.map.end, "{offset:#x}+{len:#x} is not in the heap");
        // SAFETY: inside the mapping by the assertion.
        unsafe { self.base.add(offset as usize) }
    }

    /// Asks for huge pages behind a populated range; says whether the kernel agreed.
    pub(crate) fn collapse(&self, offset: u64, len: u64) -> bool {
        const MADV_COLLAPSE: libc::c_int = 25;
        let start = offset.next_multiple_of(HUGE);
        let end = (offset + len) / HUGE * HUGE;
        if end <= start {
            return false;
        }
        let address = self.heap_at(start, end - start);
        // SAFETY: advice on a range of our own mapping; contents do not change.
        unsafe { libc::madvise(address.cast(), (end - start) as usize, MADV_COLLAPSE) == 0 }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // In a forked child the range is not mapped, and what is there now may be somebody else's.
        if crate::memory::fork::is_child(self.canary) {
            return;
        }
        crate::memory::fork::give_place_up(self.base);
        // SAFETY: the mapping was made by `map` with this length; every handle that points into it holds
        // an `Arc` of this segment.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}
