use super::*;
use proptest::prelude::*;

fn entries(keys: &[[u32; 2]]) -> Entries<usize, 2> {
    let list = keys.iter().enumerate().map(|(value, &key)| Entry { key, value }).collect();
    Entries::from_vec([20, 30], list).unwrap()
}

fn some_keys() -> impl Strategy<Value = Vec<[u32; 2]>> {
    prop::collection::vec((0u32..20, 0u32..30).prop_map(|(i, j)| [i, j]), 0..100)
}

proptest! {
    #[test]
    fn sorting_is_stable_and_row_major(keys in some_keys()) {
        let mut sorted = entries(&keys);
        sorted.sort();
        prop_assert!(sorted.is_sorted());
        prop_assert_eq!(sorted.len(), keys.len());
        for [left, right] in sorted.as_slice().array_windows() {
            prop_assert!((left.key, left.value) < (right.key, right.value));
            prop_assert_eq!(left.key, keys[left.value]);
        }
    }

    #[test]
    fn permuting_renames_one_dimension(keys in some_keys(), seed: u64) {
        let permutation = Permutation::new(Stream::new(seed, "dimension 1"), 30);
        let mut permuted = entries(&keys);
        permuted.permute(1, &permutation);
        for (key, entry) in keys.iter().zip(&permuted) {
            prop_assert_eq!(entry.key, [key[0], permutation.apply(key[1])]);
        }
    }

    #[test]
    fn samples_take_one_of_each_run(keys in some_keys(), every in 1usize..12, seed: u64) {
        let sample = entries(&keys).sample_keys(every, Stream::new(seed, "sample"));
        prop_assert_eq!(sample.len(), keys.len().div_ceil(every));
        for (drawn, run) in sample.iter().zip(keys.chunks(every)) {
            prop_assert!(run.contains(drawn));
        }
    }

    #[test]
    fn filters_maps_and_histograms(keys in some_keys(), limit in 0u32..20) {
        let mut few = entries(&keys).map(|key, value| (key[1], value.to_string()));
        few.filter(|key, _| key[0] < limit);
        let expected: Vec<_> = (0..keys.len()).filter(|&at| keys[at][0] < limit).collect();
        prop_assert_eq!(few.len(), expected.len());
        for (entry, at) in few.iter().zip(expected) {
            prop_assert_eq!(&entry.value, &(keys[at][1], at.to_string()));
        }
        let histogram = few.histogram(0, 20);
        prop_assert!(histogram.counts()[limit as usize..].iter().all(|&count| count == 0));
        prop_assert_eq!(histogram.total(), few.len() as u64);
    }
}

#[test]
fn keys_outside_the_shape_are_refused() {
    let mut array = Entries::new([2, 3]).unwrap();
    assert_eq!(array.push([1, 2], 'a'), Ok(()));
    let error = array.push([1, 3], 'b').unwrap_err();
    assert_eq!(error.to_string(), "the entry at [1, 3] lies outside the shape [2, 3]");
    assert!(matches!(array.clone().with_shape([2, 2]), Err(EntriesError::OutOfShape { .. })));
    assert_eq!(array.with_shape([5, 5]).unwrap().shape(), [5, 5]);
    let large = Entries::<(), 1>::new([(1 << 32) + 1]).unwrap_err();
    assert_eq!(large, EntriesError::ExtentTooLarge { dim: 0, extent: (1 << 32) + 1 });
}

#[test]
fn shapes_grow_with_their_keys() {
    let mut array = Entries::new([0, 0]).unwrap();
    array.push_growing([4, 0], 1).unwrap();
    array.push_growing([0, u32::MAX as usize], 2).unwrap();
    assert_eq!(array.shape(), [5, 1 << 32]);
    assert!(array.push_growing([0, usize::MAX], 3).is_err());
    assert_eq!(array.len(), 2);
}

#[test]
fn rows_are_numbered() {
    let rows = Entries::from_rows(7, vec!["a", "b"]).unwrap();
    assert_eq!(rows.shape(), [9]);
    assert_eq!(rows.as_slice()[1], Entry { key: [8], value: "b" });
    assert!(Entries::from_rows(u32::MAX as usize, vec![(), ()]).is_err());
}
