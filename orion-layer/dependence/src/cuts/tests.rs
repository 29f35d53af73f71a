use super::*;
use proptest::prelude::*;

fn some_bounds() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..60, 1..12).prop_map(|mut bounds| {
        bounds[0] = 0;
        bounds.sort_unstable();
        bounds.push(60);
        bounds
    })
}

proptest! {
    #[test]
    fn searching_and_tables_agree(bounds in some_bounds(), scale in 1usize..20_000) {
        let cuts = Cuts::new(bounds.iter().map(|bound| bound * scale).collect()).unwrap();
        let table = cuts.table();
        let near = cuts.bounds().iter().flat_map(|&bound| [bound.saturating_sub(1), bound]);
        for index in near.chain((0..60).map(|index| index * scale + scale / 2)).filter(|&index| index < cuts.extent()) {
            prop_assert!(cuts.range(cuts.find(index)).contains(&index));
            prop_assert_eq!(table.find(index as u32), cuts.find(index));
        }
    }

    #[test]
    fn blocks_are_counted_where_they_lie(
        rows in some_bounds(), columns in some_bounds(), keys in prop::collection::vec((0u32..60, 0u32..60), 0..80),
    ) {
        let axes = [Cuts::new(rows).unwrap(), Cuts::new(columns).unwrap()];
        let keys: Vec<[u32; 2]> = keys.into_iter().map(|(i, j)| [i, j]).collect();
        let (left, right) = keys.split_at(keys.len() / 2);
        let mut weights = BlockWeights::count(&axes, left.iter().copied());
        weights.merge(&BlockWeights::count(&axes, right.iter().copied()));
        let mut expected = vec![0; axes[0].parts() * axes[1].parts()];
        keys.iter().for_each(|k| expected[axes[0].find(k[0] as usize) * axes[1].parts() + axes[1].find(k[1] as usize)] += 1);
        prop_assert_eq!(weights.weights(), &expected[..]);
    }

    #[test]
    fn balancing_together_is_never_worse(seed: u64, parts in (1usize..5, 1usize..6, 1usize..4), skew in 1u32..5) {
        let (extents, parts) = ([40usize, 25, 10], [parts.0, parts.1, parts.2]);
        let keys = skewed(seed, extents, skew, 500);
        let axes = extents.map(|extent| Cuts::even(extent, extent));
        let coarse = BlockWeights::count(&axes, keys.iter().copied());
        let cost = |cuts: &[Cuts; 3]| {
            Rotation::new(&parts).cost(BlockWeights::count(cuts, keys.iter().copied()).weights())
        };
        let together: [Cuts; 3] = coarse.balance(&parts).try_into().unwrap();
        let alone: [Cuts; 3] = std::array::from_fn(|dim| {
            let mut histogram = Histogram::with_width(extents[dim], 1);
            histogram.add_all(keys.iter().map(|key| key[dim]));
            Cuts::balanced(&histogram, parts[dim])
        });
        prop_assert!(cost(&together) <= cost(&alone));
        prop_assert!(cost(&together) >= (keys.len() as u64).div_ceil(parts[0] as u64));
        for dim in 0..3 {
            prop_assert_eq!((together[dim].parts(), together[dim].extent()), (parts[dim], extents[dim]));
            prop_assert!(Cuts::new(together[dim].bounds().to_vec()).is_ok());
        }
    }
}

/// Random numbers by their index (SplitMix64: Steele, Lea and Flood, 2014).
struct Stream(u64);

impl Stream {
    fn bits(&self, index: u64) -> u64 {
        let z = self.0.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number of `[0, 1)`.
    fn uniform(&self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Keys of which small indices are the more frequent the larger `skew`, and more so together.
fn skewed<const N: usize>(seed: u64, extents: [usize; N], skew: u32, len: u64) -> Vec<[u32; N]> {
    let stream = Stream(seed);
    let index = |at: u64, extent: usize| (stream.uniform(at).powi(skew as i32) * extent as f64) as u32;
    let n = N as u64;
    let key = |at| {
        let shared = stream.bits(at + len * n).is_multiple_of(2);
        std::array::from_fn(|dim| index(if shared { at * n } else { at * n + dim as u64 }, extents[dim]))
    };
    (0..len).map(key).collect()
}

#[test]
fn dependent_dimensions_gain_from_being_balanced_together() {
    let keys = skewed(1, [400, 300], 3, 200_000);
    let parts = [8, 16];
    let mut axes = Vec::new();
    let mut alone = Vec::new();
    for dim in 0..2 {
        let mut histogram = Histogram::with_width([400, 300][dim], 1);
        histogram.add_all(keys.iter().map(|key| key[dim]));
        axes.push(Cuts::balanced(&histogram, parts[dim] * 8));
        alone.push(Cuts::balanced(&histogram, parts[dim]));
    }
    let count = |cuts: &[Cuts]| {
        BlockWeights::count(&<[Cuts; 2]>::try_from(cuts.to_vec()).unwrap(), keys.iter().copied())
    };
    let cost = |cuts: &[Cuts]| Rotation::new(&parts).cost(count(cuts).weights());
    let together = count(&axes).balance(&parts);
    assert!(cost(&together) * 100 < cost(&alone) * 95, "{} against {}", cost(&together), cost(&alone));
}

#[test]
fn what_does_not_cut_is_refused() {
    for bounds in [vec![], vec![0], vec![1, 2], vec![0, 3, 2]] {
        assert!(Cuts::new(bounds).is_err());
    }
    assert_eq!(Cuts::even(10, 4).bounds(), [0, 2, 5, 7, 10]);
    assert_eq!(Cuts::even(2, 4).bounds(), [0, 0, 1, 1, 2]);
    assert_eq!(Cuts::balanced(&Histogram::new(10, 5), 2).bounds(), [0, 5, 10]);
}
