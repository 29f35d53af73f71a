//! Centers of clusters, and which is the nearest.
use hectare::orion::dot;

/// Centers as a worker has them: the means of what it has last seen of the clusters' totals.
#[derive(Clone, Debug)]
pub(crate) struct Centers {
    columns: usize,
    rows: Vec<f32>,
    /// Half the square of each center's length.
    halves: Vec<f32>,
    /// How many points the totals had that a center is the mean of.
    counts: Vec<f64>,
}

impl Centers {
    /// No centers yet; they will have `columns` coordinates.
    pub(crate) fn new(columns: usize) -> Centers {
        Centers { columns, rows: Vec::new(), halves: Vec::new(), counts: Vec::new() }
    }

    /// These, one after the other.
    pub(crate) fn of(columns: usize, rows: &[f32]) -> Centers {
        let mut centers = Centers::new(columns);
        rows.chunks_exact(columns).for_each(|center| centers.push(center));
        centers
    }

    /// One more.
    pub(crate) fn push(&mut self, center: &[f32]) {
        self.rows.extend_from_slice(center);
        self.halves.push(0.5 * dot(center, center));
        self.counts.push(0.0);
    }

    /// The same, moved by a vector times `sign`.
    pub(crate) fn moved(&self, by: &[f32], sign: f32) -> Centers {
        let row = |center: &[f32]| center.iter().zip(by).map(|(x, by)| x + sign * by).collect::<Vec<_>>();
        let rows: Vec<f32> = self.rows.chunks_exact(self.columns).flat_map(row).collect();
        Centers { counts: self.counts.clone(), ..Centers::of(self.columns, &rows) }
    }

    /// Numbers in a center.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// One after the other.
    pub(crate) fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// One of them.
    pub(crate) fn row(&self, cluster: usize) -> &[f32] {
        &self.rows[cluster * self.columns..][..self.columns]
    }

    /// Half the square of each one's length.
    pub(crate) fn halves(&self) -> &[f32] {
        &self.halves
    }

    /// How many points they are the means of, together.
    #[allow(dead_code)] // for tests
    pub(crate) fn points(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.halves.len()
    }

    /// Moves a center to the mean of its cluster, whose totals are the sums of the points' coordinates, and their count
    /// behind. That the count is the same says that nothing has changed. A cluster without points keeps its center.
    #[inline(always)]
    pub(crate) fn follow(&mut self, cluster: usize, totals: &[f64]) {
        if self.counts[cluster] != totals[self.columns] {
            self.set(cluster, totals);
        }
    }

    /// The same for all, whatever the counts were.
    pub(crate) fn follow_all(&mut self, totals: &[f64]) {
        for (cluster, totals) in totals.chunks_exact(self.columns + 1).enumerate() {
            self.set(cluster, totals);
        }
    }

    fn set(&mut self, cluster: usize, totals: &[f64]) {
        let (sums, count) = (&totals[..self.columns], totals[self.columns]);
        self.counts[cluster] = count;
        if count > 0.0 {
            let center = &mut self.rows[cluster * self.columns..][..self.columns];
            center.iter_mut().zip(sums).for_each(|(center, sum)| *center = (sum / count) as f32);
            self.halves[cluster] = 0.5 * dot(center, center);
        }
    }

    /// The cluster whose center is nearest, and the square of the distance.
    #[inline(always)]
    pub(crate) fn nearest(&self, point: &[f32]) -> (usize, f64) {
        let (mut cluster, mut least) = (0, f32::INFINITY);
        for (number, (center, half)) in self.rows.chunks_exact(self.columns).zip(&self.halves).enumerate() {
            // Half the square of the distance, but for the point's own length.
            let far = half - dot(point, center);
            if far < least {
                (cluster, least) = (number, far);
            }
        }
        (cluster, f64::from(2.0 * least + dot(point, point)).max(0.0))
    }
}
