//! Data sets and partitions cost their own size: no reader copy, no log, nothing in reserve.
use crate::common;

use common::Scratch;
use hectare_dsm::AreaInfo;
use hectare_orion::array::Entry;
use hectare_orion::array::text::{libsvm, whitespace};
use hectare_orion::{Context, run, run_on};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread has on the heap.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends may free memory after its counter is gone.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: all calls go to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `place` came from `System` with this layout, as all memory does here.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

fn held() -> isize {
    HELD.with(Cell::get)
}

const PAGE: u64 = 4096;

/// The areas of arrays, by which an array is known.
fn areas_of(w: &mut Context<'_>, number: u64) -> Vec<AreaInfo> {
    let all = w.worker().job().areas().unwrap();
    all.into_iter().filter(|area| area.name.starts_with(&format!("orion/{number}/"))).collect()
}

fn resident(w: &mut Context<'_>) -> u64 {
    let bytes = w.worker().job().resident_bytes().unwrap();
    w.barrier().unwrap();
    bytes
}

#[test]
fn partitions_have_no_copies_and_no_log() {
    for workers in 1..=4 {
        run(workers, |w| {
            let before = resident(w);
            let mut array = w.zeros::<f32, 2>([20_000, 25])?;
            let bytes = 20_000 * 25 * 4;
            let areas = areas_of(w, 1);
            assert_eq!(areas.len(), workers);
            for area in &areas {
                assert_eq!((area.copies, area.version), (0, None), "{area:?}");
                // Elements in whole pages, and a page about the area.
                assert!(area.footprint <= area.bytes.next_multiple_of(PAGE) + PAGE, "{area:?}");
            }
            assert!(areas.iter().map(|area| area.bytes).sum::<u64>() <= bytes + 128 * workers as u64);
            // And some pages of the mailboxes, which collective calls use for the first time.
            let most = bytes + 4 * PAGE * workers as u64;
            w.barrier()?;
            let grown = resident(w) - before;
            assert!((bytes..=most).contains(&grown), "{grown} for {bytes}");
            // Writing logs nothing.
            array.for_each_mut(w, |[i, j], element| *element = (i * j) as f32)?;
            array.fill(w, 1.0)?;
            let written = resident(w) - before;
            assert!((bytes..=most).contains(&written), "{written} for {bytes}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn large_partitions_cost_whole_huge_pages_at_most() {
    run(2, |w| {
        let array = w.fill([9 << 20], 1u8)?;
        for area in areas_of(w, 1) {
            let huge = area.bytes.next_multiple_of(2 << 20);
            assert!(area.footprint <= huge + (2 << 20), "{area:?}");
        }
        array.delete(w)
    })
    .unwrap();
}

/// Memory of an array beside its entries: histograms of at most 2048 bins, and names.
const BESIDE: usize = 2 * 2048 * 8 + 4096;

#[test]
fn entries_cost_their_own_size() {
    let scratch = Scratch::new("memory-entries");
    let text: String = (0..30_000).map(|k| format!("{} {} {}\n", k * 7 % 5000, k % 300, k)).collect();
    let path = scratch.file("ratings", &text);
    for workers in 1..=3 {
        run(workers, |w| {
            let mut last = held();
            let mut check = |what: &str, len: usize, beside: usize| {
                let (grown, own) = (held() - last, len * size_of::<Entry<f32, 2>>());
                assert!(
                    grown >= own as isize && grown <= (own + beside) as isize,
                    "{what}: {grown} for {own}"
                );
                last = held();
            };
            let ratings = w.text_file(&path, whitespace::<f32, 2>)?;
            // The first exchange of a program leaves its buffers behind.
            check("read", ratings.local().len(), BESIDE + (64 << 10));
            let halves = ratings.filter(w, |_, value| value % 2.0 == 0.0)?;
            check("filtered", halves.local().len(), BESIDE);
            let mapped = ratings.map(w, |[i, _], value| value + i as f32)?;
            check("mapped", mapped.local().len(), BESIDE);
            let before = held();
            let permuted = mapped.permute(w, 0, 3)?;
            assert!((held() - before).unsigned_abs() <= BESIDE, "permuted in place");
            ratings.to_vec(w)?;
            assert!((held() - before).unsigned_abs() <= BESIDE, "nothing stays behind of a gathered array");
            drop(permuted);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn rows_cost_their_own_size() {
    let scratch = Scratch::new("memory-rows");
    let row = |k: usize| (1..=k % 20).map(|f| format!(" {f}:0.5")).collect::<String>();
    let text: String = (0..5000).map(|k| format!("{}{}\n", k % 2, row(k))).collect();
    let path = scratch.file("rows", &text);
    for workers in 1..=3 {
        run(workers, |w| {
            let before = held();
            let rows = w.text_rows(&path, libsvm)?;
            let grown = held() - before;
            let own: usize =
                rows.local().iter().map(|row| size_of_val(row) + row.value.features.len() * 8).sum();
            assert!(grown >= own as isize && grown <= (own + BESIDE) as isize, "{grown} for {own}");
            Ok(())
        })
        .unwrap();
    }
}

/// Whoever has too little memory hears of the array, and not of the areas inside of it.
#[test]
fn lack_of_memory_names_the_array() {
    let job = || hectare_dsm::Job::builder().reserve(32 << 20).embedded().unwrap();
    let made = run_on(&job(), 2, |w| w.zeros::<f64, 2>([1 << 12, 1 << 12]).map(drop));
    let array = "array 1 (orion-layer/tests/memory.rs:";
    let text = made.unwrap_err().to_string();
    assert!(text.contains(array) && text.contains("for part 1 of 2") && !text.contains("orion/"), "{text}");
    // The array fits, the copies of the workers do not.
    let trained = run_on(&job(), 2, |w| {
        let mut model = w.zeros::<f64, 1>([1 << 21])?.named("model");
        hectare_orion::parallel_for!(w, unordered, relax model; for i in 0..100 { model.add(i % 7, 1.0); })?;
        Ok(())
    });
    let text = trained.unwrap_err().to_string();
    assert!(text.contains("model needs") && !text.contains("orion/"), "{text}");
}
