//! Distances of points to all centers, in lanes: the inner loops of k-means.
//!
//! Sixteen points lie side by side, coordinate by coordinate, so that each takes one lane and nothing is summed across
//! lanes. Half the square of a distance is `|c|²/2 - x·c`, but for the point's own length: a matrix product, in which the
//! coordinates of several centers meet those of sixteen points in registers (as in Goto and van de Geijn, 2008). Which
//! instructions run is decided once; the order of additions, and so every bit, is the same with all of them.
use super::centers::Centers;
use super::training::Instructions;

/// Points side by side.
pub(crate) const LANES: usize = 16;

/// A number of each of sixteen points.
pub(crate) type Lanes = [f32; LANES];

/// The nearest two centers of sixteen points, by half the squares of their distances, less the points' own lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub(crate) struct Nearest {
    pub(crate) best: Lanes,
    pub(crate) second: Lanes,
    pub(crate) cluster: [u32; LANES],
}

/// Centers that are met at once: as many as there are registers for.
fn together(instructions: Instructions) -> usize {
    match instructions {
        Instructions::Baseline => 2,
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => 6,
    }
}

/// Centers in the order in which the inner loop reads them: groups, and in a group coordinate by coordinate.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    columns: usize,
    instructions: Instructions,
    /// Zero behind the last center.
    groups: Vec<f32>,
    /// Half the square of each center's length; infinite behind the last.
    halves: Vec<f32>,
}

impl Kernel {
    pub(crate) fn new(centers: &Centers) -> Kernel {
        Kernel::with(Instructions::all()[0], centers)
    }

    /// The same with these instructions, which have to be among [`Instructions::all`].
    pub(crate) fn with(instructions: Instructions, centers: &Centers) -> Kernel {
        assert!(Instructions::all().contains(&instructions));
        let (columns, together) = (centers.columns(), together(instructions));
        let mut groups = vec![0.0; centers.len().next_multiple_of(together) * columns];
        for (group, centers) in centers.rows().chunks(together * columns).enumerate() {
            for (place, center) in centers.chunks_exact(columns).enumerate() {
                for (column, x) in center.iter().enumerate() {
                    groups[(group * columns + column) * together + place] = *x;
                }
            }
        }
        let mut halves = centers.halves().to_vec();
        halves.resize(centers.len().next_multiple_of(together), f32::INFINITY);
        Kernel { columns, instructions, groups, halves }
    }

    /// The nearest two of all centers to each of sixteen points; of equals, the first.
    pub(crate) fn nearest(&self, points: &[f32]) -> Nearest {
        match self.instructions {
            Instructions::Baseline => self.nearest_of::<2>(points),
            // SAFETY: `Instructions::all`, where they come from, has found that the processor has them.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { self.nearest_avx2(points) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn nearest_avx2(&self, points: &[f32]) -> Nearest {
        self.nearest_of::<6>(points)
    }

    #[inline(always)]
    fn nearest_of<const TOGETHER: usize>(&self, points: &[f32]) -> Nearest {
        let points = &points.as_chunks::<LANES>().0[..self.columns];
        let mut best = [f32::INFINITY; LANES];
        let (mut second, mut cluster) = (best, [0u32; LANES]);
        let groups = self.groups.as_chunks::<TOGETHER>().0.chunks_exact(self.columns);
        for (group, (centers, halves)) in groups.zip(self.halves.as_chunks::<TOGETHER>().0).enumerate() {
            let mut products = [[0.0f32; LANES]; TOGETHER];
            for (x, centers) in points.iter().zip(centers) {
                // Whole arrays at once: what loops over places become differs from compiler to compiler.
                products = std::array::from_fn(|at| {
                    std::array::from_fn(|lane| products[at][lane] + x[lane] * centers[at])
                });
            }
            for at in 0..TOGETHER {
                let number = (group * TOGETHER + at) as u32;
                for lane in 0..LANES {
                    let far = halves[at] - products[at][lane];
                    let nearer = far < best[lane];
                    let behind = if nearer { best[lane] } else { far };
                    second[lane] = if behind < second[lane] { behind } else { second[lane] };
                    best[lane] = if nearer { far } else { best[lane] };
                    cluster[lane] = if nearer { number } else { cluster[lane] };
                }
            }
        }
        Nearest { best, second, cluster }
    }
}

/// The squares of the distances of sixteen points to one center, from the differences of their coordinates: points that
/// are equal are at zero.
#[inline(always)]
pub(crate) fn squares(points: &[f32], center: &[f32]) -> Lanes {
    let mut squares = [0.0; LANES];
    for (x, center) in points.as_chunks::<LANES>().0.iter().zip(center) {
        for lane in 0..LANES {
            let apart = x[lane] - center;
            squares[lane] += apart * apart;
        }
    }
    squares
}
