//! Tracked mappings of real memfds: what is reported, when, and what is not.

use std::fs;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Tracker, Unsupported};

mod mapping;

use mapping::{HUGE, Mapping, PAGE, memfd};

/// The pages that a collection reports. Checks that ranges are in order and maximal.
fn collect(tracker: &mut Tracker) -> Vec<usize> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    tracker.collect(|range| ranges.push(range)).unwrap();
    assert!(ranges.iter().all(|range| range.start < range.end), "{ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
    assert!(ranges.iter().all(|range| range.start % PAGE == 0 && range.end % PAGE == 0), "{ranges:?}");
    ranges.into_iter().flat_map(|range| range.start / PAGE..range.end / PAGE).collect()
}

/// Pages to write in a round: a `share` of 256 of them, spread by a hash.
fn pick(pages: usize, round: u64, share: u64) -> Vec<usize> {
    let hash = |page: usize| {
        let z = (page as u64 ^ round << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % 256
    };
    (0..pages).filter(|page| hash(*page) < share).collect()
}

/// Many rounds of writes to other pages each time, from none to all: exactly those are reported.
fn rounds_are_exact(mapping: &Mapping, tracker: &mut Tracker) {
    for (round, share) in [0, 1, 5, 64, 128, 256, 250, 0, 3, 128].into_iter().cycle().take(40).enumerate() {
        let pages = pick(mapping.pages(), round as u64, share);
        for _ in 0..2 {
            pages.iter().rev().for_each(|page| mapping.write(*page));
        }
        assert_eq!(collect(tracker), pages, "round {round}");
        assert_eq!(collect(tracker), [], "round {round}, once more");
    }
}

#[test]
fn reports_exactly_the_pages_written_of_populated_memory() {
    let mapping = Mapping::new(&memfd(3 * HUGE));
    mapping.write_all();
    let Some(mut tracker) = mapping.track() else { return };
    assert_eq!(collect(&mut tracker), [], "what was written before is not reported");
    rounds_are_exact(&mapping, &mut tracker);
}

#[test]
fn reports_exactly_the_pages_written_of_memory_never_touched() {
    let file = memfd(3 * HUGE);
    let mapping = Mapping::new(&file);
    let Some(mut tracker) = mapping.track() else { return };
    assert_eq!(collect(&mut tracker), [], "nothing is written");
    let allocated = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
    assert_eq!(allocated, 0, "tracking populates nothing");
    let read: u64 =
        (0..mapping.pages()).step_by(7).map(|page| mapping.word(page).load(Ordering::Relaxed)).sum();
    assert_eq!((read, collect(&mut tracker)), (0, vec![]), "reading is not writing");
    rounds_are_exact(&mapping, &mut tracker);
}

#[test]
fn reports_exactly_the_pages_written_of_huge_pages() {
    let mapping = Mapping::new(&memfd(4 * HUGE));
    mapping.write_all();
    if let Err(error) = mapping.advise(libc::MADV_COLLAPSE) {
        return hectare_testing::skip("huge pages", error);
    }
    let Some(mut tracker) = mapping.track() else { return };
    assert_eq!(collect(&mut tracker), []);
    rounds_are_exact(&mapping, &mut tracker);
}

/// Where the kernel takes pages out of the page table it may report too much once, and never too little.
#[test]
fn no_write_is_lost_when_pages_move_or_go() {
    let file = memfd(4 * HUGE);
    let (mapping, other) = (Mapping::new(&file), Mapping::new(&file));
    mapping.write_all();
    other.write_all();
    let Some(mut tracker) = mapping.track() else { return };
    let collapse = || {
        let refused = mapping.advise(libc::MADV_COLLAPSE).expect_err("a tracked mapping is not collapsed");
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        if let Err(error) = other.advise(libc::MADV_COLLAPSE) {
            eprintln!("not collapsed: {error}");
        }
    };
    let punch = || {
        let (mode, len) = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 4 * HUGE as libc::off64_t);
        // SAFETY: no pointers are passed, and the mapping's content is plain integers.
        assert_eq!(unsafe { libc::fallocate64(file.as_raw_fd(), mode, 0, len) }, 0);
    };
    let disturbances: [(&str, &dyn Fn()); 2] = [("collapse", &collapse), ("punch", &punch)];
    for (name, disturb) in disturbances {
        let (before, after) = (pick(mapping.pages(), 1, 30), pick(mapping.pages(), 2, 30));
        before.iter().for_each(|page| mapping.write(*page));
        disturb();
        after.iter().for_each(|page| mapping.write(*page));
        let reported = collect(&mut tracker);
        println!("{name}: {} + {} pages written, {} reported", before.len(), after.len(), reported.len());
        assert!(before.iter().chain(&after).all(|page| reported.contains(page)), "{name}: {reported:?}");
        rounds_are_exact(&mapping, &mut tracker);
        disturb();
        after.iter().for_each(|page| mapping.write(*page));
        let reported = collect(&mut tracker);
        println!("{name}: {} pages written, {} reported", after.len(), reported.len());
        assert!(after.iter().all(|page| reported.contains(page)), "{name}: {reported:?}");
        rounds_are_exact(&mapping, &mut tracker);
    }
}

#[test]
fn a_write_through_another_mapping_is_not_seen() {
    let file = memfd(HUGE);
    let (mine, other) = (Mapping::new(&file), Mapping::new(&file));
    mine.write_all();
    let Some(mut tracker) = mine.track() else { return };
    other.write(3);
    assert_eq!(mine.word(3).load(Ordering::Relaxed), 2, "the memory is the same");
    assert_eq!(collect(&mut tracker), []);
    mine.write(4);
    let Some(mut others) = other.track() else { return };
    other.write(5);
    assert_eq!((collect(&mut tracker), collect(&mut others)), (vec![4], vec![5]), "to each its own");
}

#[test]
fn a_write_by_the_kernel_is_seen() {
    let mapping = Mapping::new(&memfd(HUGE));
    let Some(mut tracker) = mapping.track() else { return };
    let (mut reader, mut writer) = io::pipe().unwrap();
    writer.write_all(&[1; 64]).unwrap();
    // SAFETY: the bytes are within the mapping, and nothing else refers to them meanwhile.
    let target = unsafe { std::slice::from_raw_parts_mut(mapping.start.add(9 * PAGE - 32), 64) };
    reader.read_exact(target).unwrap();
    assert_eq!(collect(&mut tracker), [8, 9]);
}

#[test]
fn tracks_a_part_of_a_mapping_only() {
    let mapping = Mapping::new(&memfd(HUGE));
    let Ok(mut first) = Tracker::new(mapping.start, 10 * PAGE) else { return };
    let mut second = Tracker::new(mapping.start.wrapping_add(10 * PAGE), 5 * PAGE).unwrap();
    for page in [9, 10, 14, 15] {
        mapping.write(page);
    }
    assert_eq!((collect(&mut first), collect(&mut second)), (vec![9], vec![0, 4]));
    drop(first);
    mapping.write(10);
    assert_eq!(collect(&mut second), [0]);
}

#[test]
fn a_visit_that_panics_loses_only_its_own_range() {
    let mapping = Mapping::new(&memfd(3 * HUGE));
    let Some(mut tracker) = mapping.track() else { return };
    let written: Vec<usize> = (0..mapping.pages()).step_by(2).collect();
    written.iter().for_each(|page| mapping.write(*page));
    let mut visited = Vec::new();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        tracker.collect(|range| {
            visited.push(range.start / PAGE);
            assert!(visited.len() < 100, "expected by the test");
        })
    }));
    assert!(unwound.is_err());
    visited.extend(collect(&mut tracker));
    assert_eq!(visited, written);
}

/// A thread counts up words on many pages while another collects: at the end every page whose word changed
/// after it was last looked at has been reported.
#[test]
fn a_write_that_races_with_a_collection_is_reported_in_the_end() {
    let mapping = Mapping::new(&memfd(HUGE));
    let Some(mut tracker) = mapping.track() else { return };
    let stop = AtomicBool::new(false);
    let mut seen = vec![0; mapping.pages()];
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut page = 0;
            while !stop.load(Ordering::Relaxed) {
                mapping.write(page);
                page = (page + 37) % mapping.pages();
            }
        });
        while mapping.word(0).load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..2000 {
            let copy = |page: usize| (page, mapping.word(page).load(Ordering::Relaxed));
            for (page, value) in collect(&mut tracker).into_iter().map(copy).collect::<Vec<_>>() {
                seen[page] = value;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    for page in collect(&mut tracker) {
        seen[page] = mapping.word(page).load(Ordering::Relaxed);
    }
    let actual: Vec<u64> =
        (0..mapping.pages()).map(|page| mapping.word(page).load(Ordering::Relaxed)).collect();
    assert_eq!(seen, actual);
}

#[test]
fn refuses_what_cannot_be_tracked() {
    let mapping = Mapping::new(&memfd(HUGE));
    let Some(tracker) = mapping.track() else { return };
    let refused = |start: *mut u8, len| match Tracker::new(start, len) {
        Err(Unsupported::Range { call: "UFFDIO_REGISTER", source, .. }) => source.raw_os_error().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(mapping.start, mapping.len), libc::EBUSY, "tracked already");
    drop(tracker);
    assert_eq!(refused(mapping.start.wrapping_add(8), PAGE), libc::EINVAL);
    assert_eq!(refused(mapping.start, 0), libc::EINVAL);
    assert_eq!(refused(mapping.start, usize::MAX - PAGE + 1), libc::EINVAL);
    assert!(mapping.track().is_some(), "after a drop and refusals it can be tracked again");
}

#[test]
fn a_range_that_was_mapped_anew_is_an_error() {
    let file = memfd(HUGE);
    let mapping = Mapping::new(&file);
    let Some(mut tracker) = mapping.track() else { return };
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: it replaces this mapping by another of the same file, size and protection.
    let again = unsafe { libc::mmap(mapping.start.cast(), HUGE, access, flags, file.as_raw_fd(), 0) };
    assert_eq!(again, mapping.start.cast());
    let error = tracker.collect(|_| {}).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
}

#[test]
fn leaves_no_descriptors_behind() {
    let uffds = || {
        let links = fs::read_dir("/proc/self/fd").unwrap();
        let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
        targets.filter(|target| target.to_string_lossy().contains("userfaultfd")).count()
    };
    let mapping = Mapping::new(&memfd(HUGE));
    if mapping.track().is_none() {
        return;
    }
    // Other tests hold trackers for a moment, but never hundreds of them.
    for _ in 0..300 {
        let tracker = mapping.track().unwrap();
        drop(tracker);
        assert!(Tracker::new(mapping.start.wrapping_add(1), PAGE).is_err());
    }
    assert!(uffds() < 100, "{} userfaultfds are open", uffds());
    mapping.write_all();
    let flags: Vec<libc::c_int> = {
        let tracker = mapping.track().unwrap();
        let fds = [tracker.uffd.as_raw_fd(), tracker.pagemap.as_raw_fd()];
        // SAFETY: `F_GETFD` takes no pointers, and the descriptors are open.
        fds.map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) }).to_vec()
    };
    assert_eq!(flags, [libc::FD_CLOEXEC; 2]);
}
