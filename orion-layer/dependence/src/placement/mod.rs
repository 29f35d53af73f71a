//! Where the arrays of a loop have to be: which parts each tile needs, and who hands what to whom.
mod ghosts;

pub use self::ghosts::bounds_around;
use crate::in_place::InPlace;
use crate::loop_nest::{Affine, LoopNest, Subscript};
use crate::mutant::{self, Mutant};
pub use crate::tiles::Rank;
use crate::tiles::{Steps, Tile};
use std::ops::Range;

/// How one array of a loop is placed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum ArrayPlacement {
    /// The loop only reads it: every worker reads it in place, however it is cut.
    Replicated,
    /// Its dependences are given up: all workers use all of it.
    Relaxed,
    /// One worker needs all of it, however it is cut.
    Whole,
    /// It lies in one piece, and each tile writes its elements there.
    InPlace,
    /// On several hosts: each worker has the part that it writes, and reads beyond it what was there before the pass.
    Ghosted {
        /// The array's dimension that is cut.
        dim: usize,
        /// The range that the worker of each part writes, in ascending order.
        written: Vec<Range<usize>>,
        /// That worker.
        owners: Vec<Rank>,
    },
    /// Cut along `dim` as the loop's dimension `loop_dim` is cut.
    Parts {
        /// The array's dimension.
        dim: usize,
        /// The loop's dimension.
        loop_dim: usize,
        /// Part `p` holds `bounds[p]..bounds[p + 1]`.
        bounds: Vec<usize>,
        /// Whether parts change hands in a pass.
        rotates: bool,
    },
}

/// The work of one worker in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TilePlan {
    /// Its cells.
    pub tile: Tile,
    /// The parts of each array that it needs: empty for those that are read in place.
    pub parts: Vec<Range<usize>>,
    /// The parts that it hands on afterwards: array, part, to whom.
    pub gives: Vec<(usize, usize, Rank)>,
}

/// Why the arrays of a loop cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// Two workers would need one part at once.
    #[error("in step {step} workers {} and {} would both need part {part} of {array}", workers[0], workers[1])]
    Shared {
        /// The step of the schedule.
        step: usize,
        /// The two.
        workers: [Rank; 2],
        /// The array.
        array: String,
        /// Its part.
        part: usize,
    },
    /// No dimension of a written array can be cut as the loop is.
    #[error(
        "{array} is written, and cannot be cut along {}: blocks of the loop would share elements of it",
        variables.join(" or ")
    )]
    Uncuttable {
        /// The array.
        array: String,
        /// The variables of the loop along which it is cut.
        variables: Vec<String>,
    },
}

/// Everything about the arrays of a loop under one schedule.
#[derive(Clone, Debug)]
pub struct Placement {
    /// One for each array of the loop.
    pub arrays: Vec<ArrayPlacement>,
    /// The tiles of each worker, in the order of the steps.
    pub tiles: Vec<Vec<TilePlan>>,
    /// The worker that needs each part first, by array and part; `None` for parts that nobody needs.
    pub first: Vec<Vec<Option<Rank>>>,
    /// The worker that has each part at the end.
    pub last: Vec<Vec<Option<Rank>>>,
    /// The tasks of the tiles, if written arrays lie in place.
    pub in_place: Option<InPlace>,
    /// Parts handed over in a pass: array, part.
    handed: Vec<(usize, usize)>,
}

impl Placement {
    /// Places the arrays of `nest`; `cuts[d]` are the values of loop dimension `d` between the cells. An error says
    /// why it cannot be.
    pub fn of(
        nest: &LoopNest,
        cuts: &[Vec<i64>],
        steps: &Steps,
        workers: usize,
    ) -> Result<Placement, PlacementError> {
        let mut arrays = Vec::new();
        let mut parts_of_cells = Vec::new();
        for array in 0..nest.arrays.len() {
            let (placement, segments) = place(nest, array, cuts, steps)?;
            arrays.push(placement);
            parts_of_cells.push(segments);
        }
        let mut placement = Placement {
            first: parts_of_cells.iter().map(|segments| vec![None; segments.parts()]).collect(),
            last: parts_of_cells.iter().map(|segments| vec![None; segments.parts()]).collect(),
            tiles: vec![Vec::new(); workers],
            in_place: None,
            handed: Vec::new(),
            arrays,
        };
        for (number, step) in steps.iter().enumerate() {
            placement.add_step(nest, number, step, &parts_of_cells)?;
        }
        placement.note_rotations();
        Ok(placement)
    }

    /// Places the arrays of `nest` in place.
    pub fn in_place(nest: &LoopNest, steps: &Steps, workers: usize, in_place: InPlace) -> Placement {
        let placed = |array: usize| match in_place.arrays.contains(&array) {
            true => ArrayPlacement::InPlace,
            false => ArrayPlacement::Replicated,
        };
        let arrays = (0..nest.arrays.len()).map(placed).collect();
        let mut placement = Placement::uncut(arrays, steps, workers);
        placement.in_place = Some(in_place);
        placement
    }

    /// All of each array that the loop writes on the only worker that has tiles.
    pub(crate) fn whole(nest: &LoopNest, steps: &Steps, workers: usize) -> Placement {
        let placed = |array: usize| match array {
            _ if !nest.is_written(array) => ArrayPlacement::Replicated,
            _ if nest.relaxed.contains(&array) => ArrayPlacement::Relaxed,
            _ => ArrayPlacement::Whole,
        };
        Placement::uncut((0..nest.arrays.len()).map(placed).collect(), steps, workers)
    }

    /// Tiles that hand nothing on, and have no parts yet.
    fn uncut(arrays: Vec<ArrayPlacement>, steps: &Steps, workers: usize) -> Placement {
        let none = vec![Vec::new(); arrays.len()];
        let plan =
            |tile: &Tile| TilePlan { tile: tile.clone(), parts: vec![0..0; arrays.len()], gives: Vec::new() };
        let of_worker =
            |worker: usize| steps.iter().filter_map(|step| step[worker].as_ref()).map(plan).collect();
        Placement {
            tiles: (0..workers).map(of_worker).collect(),
            arrays,
            first: none.clone(),
            last: none,
            in_place: None,
            handed: Vec::new(),
        }
    }

    fn add_step(
        &mut self,
        nest: &LoopNest,
        number: usize,
        step: &[Option<Tile>],
        segments: &[Segments],
    ) -> Result<(), PlacementError> {
        let mut used: Vec<Vec<Option<Rank>>> =
            segments.iter().map(|segments| vec![None; segments.parts()]).collect();
        for (worker, tile) in step.iter().enumerate() {
            let Some(tile) = tile else { continue };
            let me = worker as Rank;
            let parts: Vec<Range<usize>> = segments.iter().map(|segments| segments.of_tile(tile)).collect();
            for (array, range) in parts.iter().enumerate() {
                for part in range.clone() {
                    if let Some(other) = used[array][part].replace(me) {
                        return Err(PlacementError::Shared {
                            step: number,
                            workers: [other, me],
                            array: nest.arrays[array].name.clone(),
                            part,
                        });
                    }
                    match self.last[array][part].replace(me) {
                        None => self.first[array][part] = Some(me),
                        Some(before) if before != me => {
                            // Whoever had it hands it on after the tile that used it last.
                            if let Some(plan) = self.tiles[before as usize]
                                .iter_mut()
                                .rev()
                                .find(|plan| plan.parts[array].contains(&part))
                            {
                                plan.gives.push((array, part, me));
                                self.handed.push((array, part));
                            }
                        }
                        Some(_) => {}
                    }
                }
            }
            self.tiles[worker].push(TilePlan { tile: tile.clone(), parts, gives: Vec::new() });
        }
        Ok(())
    }

    fn note_rotations(&mut self) {
        for &(array, _) in &self.handed {
            if let ArrayPlacement::Parts { rotates, .. } = &mut self.arrays[array] {
                *rotates = true;
            }
        }
    }

    /// How many parts change hands in a pass.
    pub fn hand_overs(&self) -> usize {
        self.handed.len()
    }

    /// Bytes that change hands in a pass.
    pub fn moved_bytes(&self, nest: &LoopNest) -> f64 {
        let bytes = self.handed.iter().map(|(array, part)| self.part_bytes(nest, *array, *part));
        // An empty sum of floats is -0.
        bytes.fold(0.0, |sum, bytes| sum + bytes)
    }

    /// Bytes of a part of an array; 0 of one that is not cut.
    pub fn part_bytes(&self, nest: &LoopNest, array: usize, part: usize) -> f64 {
        let named = &nest.arrays[array];
        let all = named.shape.iter().map(|extent| *extent as f64).product::<f64>();
        match &self.arrays[array] {
            ArrayPlacement::Parts { dim, bounds, .. } => {
                let share = (bounds[part + 1] - bounds[part]) as f64 / named.shape[*dim].max(1) as f64;
                all * share * named.element_bytes as f64
            }
            _ => 0.0,
        }
    }
}

/// Which parts of an array belong to which cells of the loop's dimension that it is cut along.
struct Segments {
    loop_dim: Option<usize>,
    /// Boundaries of the segments, in cells.
    cells: Vec<usize>,
    /// Whether part numbers go down as cells go up.
    reversed: bool,
}

impl Segments {
    fn parts(&self) -> usize {
        self.cells.len().saturating_sub(1)
    }

    fn of_tile(&self, tile: &Tile) -> Range<usize> {
        let Some(dim) = self.loop_dim else { return 0..0 };
        let at = |cell: &usize| self.cells.partition_point(|boundary| boundary < cell);
        let (first, last) = (at(&tile.cells[dim].start), at(&tile.cells[dim].end));
        if self.reversed { self.parts() - last..self.parts() - first } else { first..last }
    }
}

fn place(
    nest: &LoopNest,
    array: usize,
    cuts: &[Vec<i64>],
    steps: &Steps,
) -> Result<(ArrayPlacement, Segments), PlacementError> {
    let none = Segments { loop_dim: None, cells: Vec::new(), reversed: false };
    if !nest.is_written(array) {
        return Ok((ArrayPlacement::Replicated, none));
    }
    if nest.relaxed.contains(&array) {
        return Ok((ArrayPlacement::Relaxed, none));
    }
    if cuts.iter().all(|cuts| cuts.len() <= 2) {
        return Ok((ArrayPlacement::Whole, none));
    }
    let named = &nest.arrays[array];
    for (loop_dim, cuts_of_dim) in cuts.iter().enumerate().filter(|(_, cuts)| cuts.len() > 2) {
        let mut cells: Vec<usize> = steps
            .iter()
            .flatten()
            .flatten()
            .flat_map(|tile| [tile.cells[loop_dim].start, tile.cells[loop_dim].end])
            .chain([0, cuts_of_dim.len() - 1])
            .collect();
        cells.sort_unstable();
        cells.dedup();
        for (dim, extent) in named.shape.iter().enumerate() {
            if let Some((bounds, reversed)) = bounds(nest, array, dim, *extent, loop_dim, cuts, &cells) {
                let placement = ArrayPlacement::Parts { dim, loop_dim, bounds, rotates: false };
                return Ok((placement, Segments { loop_dim: Some(loop_dim), cells, reversed }));
            }
        }
    }
    Err(uncuttable(nest, array, cuts))
}

fn uncuttable(nest: &LoopNest, array: usize, cuts: &[Vec<i64>]) -> PlacementError {
    let is_cut = |dim: &usize| cuts[*dim].len() > 2;
    let variables = (0..nest.dims.len()).filter(is_cut).map(|dim| nest.dims[dim].name.clone()).collect();
    PlacementError::Uncuttable { array: nest.arrays[array].name.clone(), variables }
}

/// Cuts dimension `dim` of the array where the segments of the loop's dimension touch disjoint ranges of it.
fn bounds(
    nest: &LoopNest,
    array: usize,
    dim: usize,
    extent: usize,
    loop_dim: usize,
    cuts: &[Vec<i64>],
    cells: &[usize],
) -> Option<(Vec<usize>, bool)> {
    // Inner loops may have bounds that are not known; what does not depend on them can still be cut.
    let mut variables: Vec<Option<(i64, i64)>> = Vec::new();
    for variable in nest.dims.iter().chain(&nest.inner) {
        variables.push(variable.bounds.map(|(start, end)| (start, end - 1)));
    }
    let mut touched: Vec<Option<(i64, i64)>> = Vec::new();
    for segment in cells.windows(2) {
        let (start, end) = (cuts[loop_dim][segment[0]], cuts[loop_dim][segment[1]]);
        if start >= end {
            touched.push(None);
            continue;
        }
        variables[loop_dim] = Some((start, end - 1));
        let mut hull: Option<(i64, i64)> = None;
        for access in nest.accesses_of(array) {
            let (low, high) = match access.subscripts.get(dim)? {
                Subscript::Index(index) => interval(index, &variables)?,
                Subscript::Range(from, to) => {
                    (interval(from, &variables)?.0, interval(to, &variables)?.1.checked_sub(1)?)
                }
                Subscript::Full | Subscript::Unknown => return None,
            };
            hull = Some(hull.map_or((low, high), |(a, b)| (a.min(low), b.max(high))));
        }
        touched.push(hull);
    }
    let known: Vec<(i64, i64)> = touched.iter().copied().flatten().collect();
    let reversed = known.len() > 1 && known[0].0 > known[1].0;
    if reversed {
        touched.reverse();
    }
    // Part p begins where its segment does; what no segment touches belongs to the part before.
    let mut bounds = vec![0];
    let mut end = i64::MIN;
    for (number, hull) in touched.iter().enumerate() {
        let start = match hull {
            Some((low, high)) => {
                if *low <= end {
                    return None;
                }
                end = *high;
                (*low).clamp(0, extent as i64) as usize
            }
            None if mutant::is(Mutant::EmptyPart) => *bounds.last()?,
            // Behind what the segments before it touch.
            None => end.saturating_add(1).clamp(0, extent as i64) as usize,
        };
        if number > 0 {
            bounds.push(start.max(*bounds.last()?));
        }
    }
    bounds.push(extent);
    Some((bounds, reversed))
}

/// The least and the greatest value of an affine form over a box, of which sides that the form does not depend on need
/// not be known.
fn interval(form: &Affine, variables: &[Option<(i64, i64)>]) -> Option<(i64, i64)> {
    let (mut low, mut high) = (form.constant, form.constant);
    for (coefficient, side) in form.coefficients.iter().zip(variables).filter(|(c, _)| **c != 0) {
        let (first, last) = (*side)?;
        let (a, b) = (coefficient.checked_mul(first)?, coefficient.checked_mul(last)?);
        low = low.checked_add(a.min(b))?;
        high = high.checked_add(a.max(b))?;
    }
    Some((low, high))
}
