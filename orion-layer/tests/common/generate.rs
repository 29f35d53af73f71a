//! Random cases.
use super::case::{Case, LoopSpec, SpaceSpec};
use super::random::Random;
use hectare_dependence::loop_nest::{Access, Affine, Mode, Order, Subscript};

/// Elements of an array, at most.
pub(super) const MOST_ELEMENTS: usize = 4096;
/// Elements that all passes together touch, at most.
pub(super) const MOST_WORK: usize = 60_000;

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x0123_4567_89ab_cdef));
    loop {
        if let Some(case) = attempt(seed, &mut random) {
            return case;
        }
    }
}

/// An extent: none and one now and then.
fn extent(random: &mut Random, most: usize) -> usize {
    match random.below(20) {
        0 => 0,
        1 | 2 => 1,
        _ => 2 + random.below(most - 1),
    }
}

pub(super) fn space(random: &mut Random) -> SpaceSpec {
    let dims = *random.pick(&[1, 2, 2, 2, 3]);
    let most = [48, 18, 8][dims - 1];
    let mut extents: Vec<usize> = (0..dims).map(|_| extent(random, most)).collect();
    if dims == 2 && random.percent(10) {
        extents[random.below(2)] *= 5;
    }
    if random.percent(50) {
        let start = random.below(3);
        return SpaceSpec::Dense(extents.iter().map(|extent| start..start + extent).collect());
    }
    if extents.contains(&0) {
        return SpaceSpec::Entries { shape: extents, keys: Vec::new() };
    }
    let points: usize = extents.iter().product();
    let count = random.below(2 * points.min(100) + 1);
    let mut keys: Vec<Vec<usize>> = Vec::new();
    for _ in 0..count {
        let key = if !keys.is_empty() && random.percent(15) {
            random.pick(&keys).clone()
        } else {
            extents.iter().map(|extent| random.below(*extent)).collect()
        };
        keys.push(key);
    }
    SpaceSpec::Entries { shape: extents, keys }
}

/// The least and the greatest value of a form; of an empty range as if it had one value.
pub(super) fn interval(form: &Affine, variables: &[(i64, i64)]) -> (i64, i64) {
    let mut ends = (form.constant, form.constant);
    for (c, (start, end)) in form.coefficients.iter().zip(variables) {
        let (a, b) = (c * start, c * (end - 1).max(*start));
        ends = (ends.0 + a.min(b), ends.1 + a.max(b));
    }
    ends
}

fn form(random: &mut Random, variables: usize) -> Affine {
    let coefficients = (0..variables).map(|_| *random.pick(&[0, 0, 1, 1, -1, 2])).collect();
    Affine { constant: 0, coefficients }
}

/// `form`, moved so that it is never below `least`.
pub(super) fn above(form: Affine, least: i64, variables: &[(i64, i64)]) -> Affine {
    let low = interval(&form, variables).0;
    form.plus(&Affine::constant(least - low))
}

/// How the accesses of a loop to one array look.
struct Style {
    /// This dimension of the array goes with this form, in most accesses.
    aligned: Option<(usize, Affine)>,
}

fn subscript(random: &mut Random, style: &Style, dim: usize, variables: &[(i64, i64)]) -> Subscript {
    if let Some((aligned, form)) = &style.aligned
        && *aligned == dim
    {
        return match random.below(24) {
            // A neighbour.
            0 => Subscript::Index(form.plus(&Affine::constant(random.within(-1, 1)))),
            1 => Subscript::Range(form.clone(), form.plus(&Affine::constant(random.within(0, 2)))),
            _ => Subscript::Index(form.clone()),
        };
    }
    match random.below(if style.aligned.is_some() { 12 } else { 10 }) {
        0 => Subscript::Index(Affine::constant(random.within(0, 2))),
        1 => {
            let start = form(random, variables.len());
            let start = above(start, 0, variables);
            let end = start.plus(&Affine::constant(random.within(0, 3)));
            Subscript::Range(start, end)
        }
        2 if random.percent(30) => Subscript::Unknown,
        3 | 10 | 11 => Subscript::Full,
        4..=6 => {
            let variable = random.below(variables.len());
            let least = random.within(0, 1);
            Subscript::Index(above(Affine::var(variable), least, variables))
        }
        _ => {
            let (form, least) = (form(random, variables.len()), random.within(0, 1));
            Subscript::Index(above(form, least, variables))
        }
    }
}

/// Makes arrays large enough for the accesses of a loop.
pub(super) fn make_room(shapes: &mut [Vec<usize>], space: &SpaceSpec, spec: &LoopSpec) {
    let variables: Vec<(i64, i64)> = space.bounds().into_iter().chain(spec.inner.clone()).collect();
    for access in &spec.accesses {
        for (subscript, extent) in access.subscripts.iter().zip(&mut shapes[access.array]) {
            let needs = match subscript {
                Subscript::Index(form) => interval(form, &variables).1 + 1,
                Subscript::Range(start, end) => {
                    interval(end, &variables).1.max(interval(start, &variables).1)
                }
                Subscript::Full | Subscript::Unknown => 1,
            };
            *extent = (*extent).max(needs as usize);
        }
    }
}

fn attempt(seed: u64, random: &mut Random) -> Option<Case> {
    let space = space(random);
    let arrays = (1 + random.below(3)).max(if random.percent(40) { space.dims() } else { 1 });
    let dims: Vec<usize> = (0..arrays).map(|_| *random.pick(&[1, 1, 2, 2, 3])).collect();
    let mut shapes: Vec<Vec<usize>> =
        dims.iter().map(|dims| (0..*dims).map(|_| 1 + random.below(3)).collect()).collect();
    let loops: Vec<LoopSpec> = (0..1 + random.below(2)).map(|_| a_loop(random, &space, &dims)).collect();
    loops.iter().for_each(|spec| make_room(&mut shapes, &space, spec));
    let passes = match loops.len() {
        1 => vec![0; 1 + random.below(2)],
        _ => vec![0, 1, 0],
    };
    let case = Case { seed, shapes, space, loops, passes };
    let fits = case.shapes.iter().all(|shape| shape.iter().product::<usize>() <= MOST_ELEMENTS);
    (fits && work(&case) <= MOST_WORK).then_some(case)
}

fn a_loop(random: &mut Random, space: &SpaceSpec, dims: &[usize]) -> LoopSpec {
    let inner: Vec<(i64, i64)> = match random.percent(20) {
        true => vec![(0, random.within(0, 3))],
        false => Vec::new(),
    };
    let variables: Vec<(i64, i64)> = space.bounds().into_iter().chain(inner.clone()).collect();
    if dims.len() >= space.dims() && random.percent(40) {
        return factors(random, space, dims);
    }
    let tidy = random.percent(75);
    let styles: Vec<Style> = dims
        .iter()
        .map(|dims| {
            let variable = random.below(space.dims());
            let factor = *random.pick(&[1, 1, 1, 2, -1]);
            let form = above(Affine::var(variable).times(factor), 1, &variables);
            Style { aligned: (tidy || random.percent(30)).then(|| (random.below(*dims), form)) }
        })
        .collect();
    let mut accesses: Vec<Access> = Vec::new();
    for _ in 0..1 + random.below(4) {
        let array = random.below(dims.len());
        let subscripts = (0..dims[array]).map(|dim| subscript(random, &styles[array], dim, &variables));
        let (subscripts, mode) =
            (subscripts.collect(), *random.pick(&[Mode::Read, Mode::Write, Mode::Update]));
        let text = format!("access {} to array {array}", accesses.len());
        accesses.push(Access { array, subscripts, mode, text, line: 0 });
    }
    let order = if random.percent(35) { Order::Ordered } else { Order::Unordered };
    let element_bytes = if random.percent(60) { 1 << 16 } else { 8 };
    LoopSpec { order, inner, element_bytes, inspected: false, accesses }
}

/// A loop that writes one array by each of its variables, as factorizations do.
fn factors(random: &mut Random, space: &SpaceSpec, dims: &[usize]) -> LoopSpec {
    // Loops over one space differ in which variable goes with which array, so that parts and entries move between.
    let shift = random.below(2);
    let mut accesses = Vec::new();
    for (array, dims) in dims.iter().enumerate() {
        let aligned = random.below(*dims);
        let subscripts = (0..*dims).map(|dim| match random.below(3) {
            _ if dim == aligned => Subscript::Index(Affine::var((array + shift) % space.dims())),
            0 => Subscript::Index(Affine::constant(random.within(0, 2))),
            _ => Subscript::Full,
        });
        let subscripts = subscripts.collect();
        let mode = if random.percent(70) { Mode::Update } else { Mode::Write };
        let text = format!("factor {array}");
        accesses.push(Access { array, subscripts, mode, text, line: 0 });
    }
    let (order, inner) = (Order::Unordered, Vec::new());
    LoopSpec { order, inner, element_bytes: 1 << 16, inspected: false, accesses }
}

/// Elements that all passes touch, about.
pub(super) fn work(case: &Case) -> usize {
    let of_pass = |which: &usize| {
        let spec = &case.loops[*which];
        let of_access = |access: &Access| {
            let full = access.subscripts.iter().zip(&case.shapes[access.array]);
            let full = full.filter(|(subscript, _)| **subscript == Subscript::Full);
            full.map(|(_, extent)| *extent).product::<usize>()
        };
        let inner = spec.inner_values().len();
        inner * spec.accesses.iter().map(of_access).sum::<usize>()
    };
    let iterations = case.space.iterations().len();
    iterations * case.passes.iter().map(of_pass).sum::<usize>()
}
