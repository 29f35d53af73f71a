//! The free list against a map of bytes, under churn, and on damaged input.

use hectare_testing::Random;
use proptest::prelude::*;

use super::{Corrupt, Extent, FreeList};

/// Storage of a list, owned.
struct Store {
    entries: Vec<Extent>,
    len: u64,
}

impl Store {
    fn new(capacity: usize) -> Self {
        Self { entries: vec![Extent { offset: 0, len: 0 }; capacity], len: 0 }
    }

    fn with(capacity: usize, whole: Extent) -> Self {
        let mut store = Self::new(capacity);
        store.list().rebuild(whole, &mut []).unwrap();
        store
    }

    fn list(&mut self) -> FreeList<'_> {
        FreeList::new(&mut self.entries, &mut self.len)
    }
}

fn extent(offset: u64, len: u64) -> Extent {
    Extent { offset, len }
}

const WHOLE: Extent = Extent { offset: 24, len: 384 };

#[derive(Clone, Debug)]
enum Op {
    Allocate { len: u64, align_log2: u32 },
    Release { pick: prop::sample::Index },
    ReleaseTwice { pick: prop::sample::Index },
}

fn ops(count: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (1u64..40, 0u32..6).prop_map(|(len, align_log2)| Op::Allocate { len, align_log2 }),
        5 => any::<prop::sample::Index>().prop_map(|pick| Op::Release { pick }),
        1 => any::<prop::sample::Index>().prop_map(|pick| Op::ReleaseTwice { pick }),
    ];
    prop::collection::vec(op, count)
}

/// One flag a byte: whether it is in use.
struct Model {
    used: Vec<bool>,
    live: Vec<Extent>,
}

impl Model {
    fn new() -> Self {
        let mut used = vec![true; (WHOLE.offset + WHOLE.len) as usize];
        used[WHOLE.offset as usize..].fill(false);
        Self { used, live: Vec::new() }
    }

    fn mark(&mut self, extent: Extent, used: bool) {
        for byte in &mut self.used[extent.offset as usize..(extent.offset + extent.len) as usize] {
            assert_ne!(*byte, used, "{extent} overlaps what was there");
            *byte = used;
        }
    }

    /// The maximal runs of unused bytes.
    fn free(&self) -> Vec<Extent> {
        let mut runs: Vec<Extent> = Vec::new();
        for (offset, _) in self.used.iter().enumerate().filter(|(_, used)| !**used) {
            match runs.last_mut() {
                Some(run) if run.offset + run.len == offset as u64 => run.len += 1,
                _ => runs.push(extent(offset as u64, 1)),
            }
        }
        runs
    }

    /// Best fit, lowest address, by definition: with `full`, only where the list does not grow.
    fn best(&self, len: u64, align: u64, full: bool) -> Option<u64> {
        let fits = |run: &Extent| {
            let offset = run.offset.next_multiple_of(align);
            let (end, run_end) = (offset + len, run.offset + run.len);
            let grows = offset > run.offset && end < run_end;
            (end <= run_end && !(full && grows)).then_some((run.len, offset))
        };
        self.free().iter().filter_map(fits).min().map(|(_, offset)| offset)
    }
}

fn run(ops: &[Op], capacity: usize) {
    let mut store = Store::with(capacity, WHOLE);
    let mut model = Model::new();
    for op in ops {
        let mut list = store.list();
        match op {
            Op::Allocate { len, align_log2 } => {
                let align = 1 << align_log2;
                let full = list.extents().len() == capacity;
                let offset = list.allocate(*len, align);
                assert_eq!(offset, model.best(*len, align, full), "{len} bytes at a multiple of {align}");
                if let Some(offset) = offset {
                    assert_eq!(offset % align, 0);
                    model.mark(extent(offset, *len), true);
                    model.live.push(extent(offset, *len));
                }
            }
            Op::Release { pick } | Op::ReleaseTwice { pick } if !model.live.is_empty() => {
                let at = pick.index(model.live.len());
                let freed = model.live[at];
                match list.release(freed) {
                    Ok(()) => {
                        model.live.swap_remove(at);
                        model.mark(freed, false);
                    }
                    Err(error) => {
                        assert_eq!(error, Corrupt::Full { extent: freed, capacity });
                        assert_eq!(list.extents().len(), capacity);
                    }
                }
                if matches!(op, Op::ReleaseTwice { .. }) && !model.live.contains(&freed) {
                    let refused = list.release(freed);
                    assert!(matches!(refused, Err(Corrupt::DoubleFree { .. })), "{refused:?}");
                }
            }
            _ => {}
        }
        let free = model.free();
        assert_eq!(list.extents(), free, "after {op:?}");
        assert_eq!(list.total() + model.live.iter().map(|live| live.len).sum::<u64>(), WHOLE.len);
        assert_eq!(list.largest(), free.iter().map(|run| run.len).max().unwrap_or(0));
    }
    let mut rebuilt = Store::new(capacity);
    rebuilt.list().rebuild(WHOLE, &mut model.live.clone()).unwrap();
    assert_eq!(rebuilt.list().extents(), store.list().extents());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 4096, ..ProptestConfig::default() })]

    /// 256 cases of 400 operations are 102,400; the list's storage is ample in these.
    #[test]
    fn agrees_with_a_map_of_bytes(ops in ops(400)) {
        run(&ops, 400);
    }

    /// The same with storage for so few entries that it is full most of the time.
    #[test]
    fn agrees_with_a_map_of_bytes_when_storage_is_scarce(ops in ops(100), capacity in 1usize..6) {
        run(&ops, capacity);
    }

    /// Any input and any damage end in a list or in an error, and never in a panic.
    #[test]
    fn survives_any_extents(
        damage in prop::array::uniform4((any::<u64>(), any::<u64>())),
        used in 0u64..8,
        live in prop::collection::vec((any::<u64>(), any::<u64>()), 0..6),
        (offset, len) in (any::<u64>(), any::<u64>()),
        (ask, align_log2) in (any::<u64>(), 0u32..64),
    ) {
        let mut store = Store { entries: damage.map(|(offset, len)| extent(offset, len)).to_vec(), len: used };
        for _ in 0..4 {
            let mut list = store.list();
            let _ = (list.total(), list.largest());
            let _ = list.release(extent(offset, len));
            let _ = list.allocate(ask, 1 << align_log2);
        }
        let mut live: Vec<Extent> = live.into_iter().map(|(offset, len)| extent(offset, len)).collect();
        let mut list = store.list();
        let _ = list.rebuild(extent(offset, len), &mut live);
        let _ = list.rebuild(extent(0, u64::MAX), &mut live);
        let _ = list.release(extent(offset, len));
        if let Some(at) = list.allocate(ask, 1 << align_log2) {
            prop_assert!(at.checked_add(ask).is_some());
        }
    }
}

/// Blocks of 4 KiB to 2 MiB, most of them small, come and go at 50 to 70 % of 256 MiB, 100,000 times. At any
/// time the largest free extent holds more than a tenth of what is free, which is four times the largest block.
#[test]
fn does_not_collapse_under_churn() {
    const PAGE: u64 = 4096;
    const WHOLE: Extent = Extent { offset: 0, len: 256 << 20 };
    let mut store = Store::with(4096, WHOLE);
    let mut list = store.list();
    let mut random = Random(20);
    let mut live: Vec<Extent> = Vec::new();
    let (mut used, mut low, mut filling) = (0, 1.0f64, true);
    for _ in 0..100_000 {
        let occupancy = used as f64 / WHOLE.len as f64;
        filling = if filling { occupancy < 0.7 } else { occupancy < 0.5 };
        // Drifts up or down in between, so that the whole band is crossed again and again.
        if random.below(100) < if filling { 55 } else { 45 } {
            let magnitude = random.below(10);
            let len = PAGE * ((1 << magnitude) + random.below(1 << magnitude) as u64).min(512);
            let offset = list.allocate(len, PAGE << random.below(3)).expect("a block that fits by far");
            live.push(extent(offset, len));
            used += len;
        } else if !live.is_empty() {
            let freed = live.swap_remove(random.below(live.len()));
            list.release(freed).unwrap();
            used -= freed.len;
        }
        if occupancy > 0.4 {
            low = low.min(list.largest() as f64 / list.total() as f64);
        }
    }
    println!("lowest largest/total {low:.3}, {} live, {} free extents", live.len(), list.extents().len());
    assert!(low > 0.1, "the largest free extent fell to {low} of the free bytes");
    for freed in live {
        list.release(freed).unwrap();
    }
    assert_eq!(list.extents(), [WHOLE]);
}

#[test]
fn takes_the_smallest_that_fits_and_the_lowest_of_equals() {
    let mut store = Store::new(8);
    let mut list = store.list();
    // Gaps: 0+50, 60+20, 90+10, 110+20, 140+60.
    let mut live = [extent(130, 10), extent(50, 10), extent(80, 10), extent(100, 10)];
    list.rebuild(extent(0, 200), &mut live).unwrap();
    assert_eq!(live[0], extent(50, 10), "live extents come back sorted");
    assert_eq!(list.allocate(15, 1), Some(60));
    assert_eq!(list.allocate(10, 1), Some(90));
    assert_eq!(list.allocate(20, 1), Some(110));
    assert_eq!(list.allocate(32, 64), Some(0), "the small gap wins, although only its start is aligned");
    assert_eq!(list.allocate(0, 1), None);
    assert_eq!(list.allocate(61, 1), None);
    assert_eq!(list.extents(), [extent(32, 18), extent(75, 5), extent(140, 60)]);
}

#[test]
fn names_both_extents_of_an_overlap() {
    let mut store = Store::with(8, extent(0, 100));
    let mut list = store.list();
    let mut live = [extent(40, 10), extent(10, 31)];
    let overlap = list.rebuild(extent(0, 100), &mut live).unwrap_err();
    assert_eq!(overlap, Corrupt::Overlap { first: extent(10, 31), second: extent(40, 10) });
    assert_eq!(overlap.to_string(), "live extents 0xa+0x1f and 0x28+0xa overlap");
    assert_eq!(list.extents(), [], "nothing may be allocated from a damaged list");

    let whole = extent(8, 92);
    for outside in [extent(7, 2), extent(90, 11), extent(50, u64::MAX)] {
        let refused = list.rebuild(whole, &mut [outside]);
        assert_eq!(refused, Err(Corrupt::OutOfRange { extent: outside, whole }));
    }
    list.rebuild(whole, &mut [extent(50, 0), extent(8, 92)]).unwrap();
    assert_eq!(list.extents(), []);
}

#[test]
fn refuses_what_is_free_already() {
    let mut store = Store::with(8, extent(0, 100));
    let mut list = store.list();
    assert_eq!(list.allocate(40, 1), Some(0));
    let before = list.extents().to_vec();
    for wrong in [extent(39, 2), extent(0, 100), extent(40, 60), extent(99, 5), extent(30, 80)] {
        let refused = list.release(wrong);
        assert_eq!(refused, Err(Corrupt::DoubleFree { extent: wrong, free: extent(40, 60) }));
    }
    assert!(matches!(list.release(extent(u64::MAX, 2)), Err(Corrupt::OutOfRange { .. })));
    assert_eq!(list.release(extent(70, 0)), Ok(()));
    assert_eq!(list.extents(), before);
}

#[test]
fn a_length_beyond_the_storage_is_clamped() {
    let mut store = Store::with(2, extent(0, 100));
    store.len = u64::MAX;
    assert_eq!(store.list().extents().len(), 2);
}
