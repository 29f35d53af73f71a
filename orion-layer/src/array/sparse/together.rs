//! Values with memory of their own, such as rows of features, in the order in which loops run through them.
use super::Value;
use crate::array::wire;
use crate::error::Result;
use hectare_data::entries::Entry;
use std::mem::needs_drop;

/// Makes values that have memory of their own anew, one after the other: an allocator gives them memory side by side then, and
/// a loop through them reads it in order. Where they were made in another order, each row is a wait for memory else, in which
/// a loop over rows of 33 features spends three quarters of its time.
///
/// Values go through serde, as they do on their way to other workers; those that it cannot encode stay where they are.
///
/// # Errors
/// [`Error::Message`](crate::Error::Message) for what cannot be decoded again.
pub(super) fn side_by_side<T: Value, const N: usize>(entries: Vec<Entry<T, N>>) -> Result<Vec<Entry<T, N>>> {
    if !needs_drop::<T>() {
        return Ok(entries);
    }
    let mut bytes = Vec::new();
    for entry in &entries {
        if wire::put_any(&entry.value, &mut bytes).is_err() {
            return Ok(entries);
        }
    }
    let mut keys = Vec::with_capacity(entries.len());
    // All of the old memory is given back before any is asked for: else the new values would lie in the gaps.
    keys.extend(entries.into_iter().map(|entry| entry.key));
    let mut rest = bytes.as_slice();
    let mut placed = Vec::with_capacity(keys.len());
    for key in keys {
        placed.push(Entry { key, value: wire::take(&mut rest)? });
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_and_ascend_in_memory() {
        // In an order that jumps to and fro.
        let made: Vec<Vec<u64>> = (0..5000u64).map(|k| vec![k; 40]).collect();
        let entries: Vec<_> = (0..5000usize).map(|at| at * 1777 % 5000).map(|k| (k, &made[k])).collect();
        let entries: Vec<Entry<Vec<u64>, 1>> =
            entries.into_iter().map(|(k, value)| Entry { key: [k as u32], value: value.clone() }).collect();
        drop(made);
        let mut jumbled = entries.clone();
        jumbled.sort_by_key(|entry| entry.key[0] % 50);
        let expected = jumbled.clone();
        let placed = side_by_side(jumbled).unwrap();
        assert_eq!(placed, expected);
        let places: Vec<usize> = placed.iter().map(|entry| entry.value.as_ptr() as usize).collect();
        let near = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1024).count();
        assert!(near > 4500, "{near} of 5000 values have their neighbours beside them");
    }
}
