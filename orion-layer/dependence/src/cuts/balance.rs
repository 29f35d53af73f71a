//! Consecutive bins into parts whose heaviest is as light as possible: the chains-on-chains problem, solved by
//! searching for the smallest bottleneck that a greedy probe can keep (Pınar and Aykanat, 2004).

/// Bounds of `parts` parts of consecutive bins, `0` and `weights.len()` included.
pub(super) fn balance(weights: &[u64], parts: usize) -> Vec<usize> {
    let mut sums = vec![0];
    sums.extend(weights.iter().scan(0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    }));
    let total = sums[weights.len()];
    let heaviest = weights.iter().copied().max().unwrap_or(0);
    let (mut low, mut high) = (heaviest.max(total.div_ceil(parts as u64)), total);
    while low < high {
        let middle = low + (high - low) / 2;
        if earliest(&sums, parts, middle)[0] == 0 { high = middle } else { low = middle + 1 }
    }
    spread(&sums, parts, low)
}

/// The smallest bounds with which the parts from there to the end keep the bottleneck. The first is 0 if all
/// parts can keep it.
fn earliest(sums: &[u64], parts: usize, bottleneck: u64) -> Vec<usize> {
    let mut bounds = vec![sums.len() - 1; parts + 1];
    for part in (0..parts).rev() {
        let least = sums[bounds[part + 1]].saturating_sub(bottleneck);
        bounds[part] = sums.partition_point(|&sum| sum < least);
    }
    bounds
}

/// Bounds that keep the bottleneck, each as near as that permits to an equal share of what is left.
fn spread(sums: &[u64], parts: usize, bottleneck: u64) -> Vec<usize> {
    let (bins, total) = (sums.len() - 1, sums[sums.len() - 1]);
    let earliest = earliest(sums, parts, bottleneck);
    let mut bounds = vec![0];
    for part in 1..parts {
        let start = bounds[part - 1];
        let ideal = sums[start] + (total - sums[start]) / (parts - part + 1) as u64;
        let above = sums.partition_point(|&sum| sum < ideal);
        let below = above.saturating_sub(1);
        let nearest = if ideal - sums[below].min(ideal) < sums[above] - ideal { below } else { above };
        let latest = sums.partition_point(|&sum| sum <= sums[start].saturating_add(bottleneck)) - 1;
        bounds.push(nearest.clamp(earliest[part].max(start), latest));
    }
    bounds.push(bins);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The smallest bottleneck of any cuts, by dynamic programming.
    fn optimum(weights: &[u64], parts: usize) -> u64 {
        let sum = |from: usize, to: usize| weights[from..to].iter().sum::<u64>();
        let mut best: Vec<u64> = (0..=weights.len()).map(|end| sum(0, end)).collect();
        for _ in 1..parts {
            let next = |end| (0..=end).map(|cut| best[cut].max(sum(cut, end))).min().unwrap();
            best = (0..=weights.len()).map(next).collect();
        }
        best[weights.len()]
    }

    proptest! {
        #[test]
        fn the_heaviest_part_is_as_light_as_possible(
            weights in prop::collection::vec(prop_oneof![0u64..3, 0u64..100], 1..30), parts in 1usize..9,
        ) {
            prop_assume!(weights.iter().sum::<u64>() > 0);
            let bounds = balance(&weights, parts);
            prop_assert_eq!(bounds.len(), parts + 1);
            prop_assert_eq!((bounds[0], bounds[parts]), (0, weights.len()));
            prop_assert!(bounds.is_sorted());
            let heaviest = bounds.windows(2).map(|b| weights[b[0]..b[1]].iter().sum::<u64>()).max().unwrap();
            prop_assert_eq!(heaviest, optimum(&weights, parts));
        }
    }

    #[test]
    fn weights_near_the_greatest_number_are_balanced() {
        let half = u64::MAX / 2;
        assert_eq!(balance(&[half, 1, half], 2).len(), 3);
        assert_eq!(balance(&[1, u64::MAX - 2, 1], 3), [0, 1, 2, 3]);
    }

    #[test]
    fn what_need_not_be_uneven_is_even() {
        assert_eq!(balance(&[1; 12], 4), [0, 3, 6, 9, 12]);
        // A heavy bin does not make the parts after it as heavy.
        assert_eq!(balance(&[9, 1, 1, 1, 1, 1, 1], 3), [0, 1, 4, 7]);
    }
}
