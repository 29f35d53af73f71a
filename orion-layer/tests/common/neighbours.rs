//! Random loops over two or three dimensions whose iterations use elements near their own: for wavefronts.
use super::case::{Case, LoopSpec, SpaceSpec};
use super::generate::{MOST_ELEMENTS, MOST_WORK, make_room, work};
use super::random::Random;
use hectare_dependence::loop_nest::{Access, Affine, Mode, Order, Subscript};

/// How far neighbours are, at most.
const REACH: i64 = 2;

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    loop {
        let case = attempt(seed, &mut random);
        let fits = case.shapes.iter().all(|shape| shape.iter().product::<usize>() <= MOST_ELEMENTS);
        if fits && work(&case) <= MOST_WORK {
            return case;
        }
    }
}

fn attempt(seed: u64, random: &mut Random) -> Case {
    let dims = *random.pick(&[2, 2, 3]);
    let most = [24, 9][dims - 2];
    let extents = (0..dims).map(|_| 1 + random.below(most));
    // No neighbour lies below zero.
    let start = 2 * REACH as usize;
    let space = SpaceSpec::Dense(extents.map(|extent| start..start + extent).collect());
    let mut shapes = vec![vec![1; dims]; 1 + random.below(2)];
    let loops: Vec<LoopSpec> = (0..1 + random.below(2)).map(|_| a_loop(random, dims, shapes.len())).collect();
    loops.iter().for_each(|spec| make_room(&mut shapes, &space, spec));
    let passes = if loops.len() == 1 { vec![0; 1 + random.below(2)] } else { vec![0, 1, 0] };
    Case { seed, shapes, space, loops, passes }
}

fn a_loop(random: &mut Random, dims: usize, arrays: usize) -> LoopSpec {
    // Which variable goes with which dimension of the arrays, and every how many-th element is used.
    let mut variables: Vec<usize> = (0..dims).collect();
    if random.percent(25) {
        random.shuffle(&mut variables);
    }
    let factors: Vec<i64> = (0..dims).map(|_| if random.percent(10) { 2 } else { 1 }).collect();
    let reach = if random.percent(70) { 1 } else { REACH };
    let mut accesses = Vec::new();
    for number in 0..2 + random.below(5) {
        let shift = |random: &mut Random| match number {
            0 => 0,
            _ => random.within(-reach, reach),
        };
        let subscripts = variables.iter().zip(&factors).map(|(variable, factor)| {
            let form = Affine::var(*variable).times(*factor);
            match random.below(60) {
                0 => Subscript::Full,
                1 => Subscript::Range(form.clone(), form.plus(&Affine::constant(random.within(0, 2)))),
                _ => Subscript::Index(form.plus(&Affine::constant(shift(random)))),
            }
        });
        let subscripts = subscripts.collect();
        let (array, mode) = match number {
            0 => (0, *random.pick(&[Mode::Update, Mode::Write])),
            _ if random.percent(10) => (random.below(arrays), Mode::Write),
            _ => (random.below(arrays), Mode::Read),
        };
        let text = format!("neighbour {number}");
        accesses.push(Access { array, subscripts, mode, text, line: 0 });
    }
    let order = if random.percent(80) { Order::Ordered } else { Order::Unordered };
    LoopSpec { order, inner: Vec::new(), element_bytes: 1 << 16, inspected: false, accesses }
}
