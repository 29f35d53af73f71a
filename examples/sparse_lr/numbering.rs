//! Features by their frequency: the weights of frequent ones first, so that workers can merge these more often than the others.
use super::{CLOCKS, Options};
use hectare::SparseArray;
use hectare::orion::array::text::LabelledRow;
use hectare::orion::relax::{Consistency, Every, Tail};
use hectare::orion::{Context, Result, parallel_for};

/// A feature is frequent if this many training examples have it.
const FREQUENT: u32 = 64;

/// Fewer features are merged at each clock, however rare they are.
const WIDE: usize = 4096;

/// Clocks in a pass, for each worker, at which the weights of frequent features are merged.
const HEAD_CLOCKS: usize = 64;

/// Where the weight of each feature is, and the intercept.
pub(crate) struct Numbering {
    /// By feature; none if each is at its number, and the intercept behind them.
    places: Option<Vec<u32>>,
    features: usize,
    /// How many weights are of frequent features.
    pub(crate) head: usize,
}

impl Numbering {
    /// Each feature at its number.
    pub(crate) fn none(features: usize) -> Numbering {
        Numbering { places: None, features, head: features + 1 }
    }

    /// By the frequencies in the examples to learn from, if most features are rare there. Collective.
    pub(crate) fn of(
        w: &mut Context<'_>,
        o: &Options,
        train: &SparseArray<LabelledRow, 1>,
        features: usize,
    ) -> Result<Numbering> {
        if o.serve {
            return Ok(Numbering::none(features));
        }
        Ok(Numbering::by(&counts(w, train, features)?))
    }

    /// For features that `counts` examples each have.
    pub(crate) fn by(counts: &[u32]) -> Numbering {
        let features = counts.len();
        let head = counts.iter().filter(|count| **count >= FREQUENT).count();
        if features < WIDE || 2 * head >= features {
            return Numbering::none(features);
        }
        let mut order: Vec<u32> = (0..features as u32).collect();
        order.sort_by_key(|feature| std::cmp::Reverse(counts[*feature as usize]));
        let mut places = vec![0; features];
        for (place, feature) in order.into_iter().enumerate() {
            places[feature as usize] = place as u32 + 1;
        }
        Numbering { places: Some(places), features, head: head + 1 }
    }

    pub(crate) fn intercept(&self) -> usize {
        if self.places.is_some() { 0 } else { self.features }
    }

    /// How often workers merge, and what only at the end of a pass.
    pub(crate) fn clocks(&self, o: &Options, workers: usize) -> (Every, Tail) {
        match (&self.places, o.run.every(HEAD_CLOCKS)) {
            (None, _) => (o.run.every(CLOCKS * workers), Tail::NONE),
            // It is measured of all weights.
            (Some(_), every @ Every::Staleness(_)) => (every, Tail::NONE),
            (Some(_), every) => (every, Tail::new(self.head, u64::MAX)),
        }
    }

    /// The features of an example by their places.
    pub(crate) fn row(&self, features: &[(u32, f32)]) -> Vec<(u32, f32)> {
        let place = |feature: u32| self.places.as_ref().map_or(feature, |places| places[feature as usize]);
        let mut placed: Vec<(u32, f32)> = features.iter().map(|(feature, x)| (place(*feature), *x)).collect();
        placed.sort_unstable_by_key(|(place, _)| *place);
        placed
    }

    /// Examples with features by their places. Collective.
    pub(crate) fn rows(
        &self,
        w: &mut Context<'_>,
        rows: SparseArray<LabelledRow, 1>,
    ) -> Result<SparseArray<LabelledRow, 1>> {
        match self.places {
            Some(_) => {
                rows.map(w, |_, row| LabelledRow { label: row.label, features: self.row(&row.features) })
            }
            None => Ok(rows),
        }
    }

    /// Weights of all features, and the intercept behind them, by their places.
    pub(crate) fn placed(&self, weights: Vec<f32>) -> Vec<f32> {
        let Some(places) = &self.places else { return weights };
        let mut placed = vec![0.0; weights.len()];
        placed[0] = weights[self.features];
        for (place, weight) in places.iter().zip(&weights) {
            placed[*place as usize] = *weight;
        }
        placed
    }

    /// The opposite.
    pub(crate) fn restored(&self, placed: Vec<f32>) -> Vec<f32> {
        let Some(places) = &self.places else { return placed };
        places.iter().map(|place| placed[*place as usize]).chain([placed[0]]).collect()
    }
}

/// How many examples have each feature. Collective.
pub(crate) fn counts(
    w: &mut Context<'_>,
    train: &SparseArray<LabelledRow, 1>,
    features: usize,
) -> Result<Vec<u32>> {
    let mut counts = w.zeros::<u32, 1>([features])?.named("examples with a feature");
    parallel_for!(w, unordered, relax counts, consistency = Consistency::Bsp, every = Every::PerPass(1);
    for ((_number), row) in train {
        for (feature, _x) in &row.features {
            counts.add(*feature as usize, 1);
        }
    })?;
    counts.to_vec(w)
}
