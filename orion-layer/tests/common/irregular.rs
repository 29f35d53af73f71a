//! Random loops whose subscripts come from data, of which a slice says beforehand what they touch.
use super::case::{Case, LoopSpec, SpaceSpec};
use super::generate::{MOST_ELEMENTS, MOST_WORK, above, make_room, work};
use super::random::Random;
use hectare_dependence::loop_nest::{Access, Affine, Mode, Order, Subscript};

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1d);
    loop {
        let case = attempt(seed, &mut random);
        let fits = case.shapes.iter().all(|shape| shape.iter().product::<usize>() <= MOST_ELEMENTS);
        if fits && work(&case) <= MOST_WORK {
            return case;
        }
    }
}

fn space(random: &mut Random) -> SpaceSpec {
    let dims = 1 + random.below(2);
    let extents: Vec<usize> = (0..dims).map(|_| 2 + random.below([300, 20][dims - 1])).collect();
    if random.percent(60) {
        return SpaceSpec::Dense(extents.iter().map(|extent| 1..1 + extent).collect());
    }
    let count = random.below(300);
    let key = |random: &mut Random| extents.iter().map(|extent| random.below(*extent)).collect();
    let keys = (0..count).map(|_| key(random)).collect();
    SpaceSpec::Entries { shape: extents, keys }
}

fn attempt(seed: u64, random: &mut Random) -> Case {
    let space = space(random);
    let iterations = space.iterations().len();
    let mut shapes: Vec<Vec<usize>> = (0..1 + random.below(3))
        .map(|_| {
            // The more rows there are, the fewer iterations conflict.
            let rows = 1 + random.below(3 * iterations + 2);
            match random.below(4) {
                0 | 1 => vec![rows],
                2 => vec![rows, 1 + random.below(4)],
                _ => vec![1 + rows / 3, 1 + random.below(3), 1 + random.below(3)],
            }
        })
        .collect();
    let loops: Vec<LoopSpec> = (0..1 + random.below(2)).map(|_| a_loop(random, &space, &shapes)).collect();
    loops.iter().for_each(|spec| make_room(&mut shapes, &space, spec));
    let passes = if loops.len() == 1 { vec![0; 1 + random.below(3)] } else { vec![0, 1, 0, 1] };
    Case { seed, shapes, space, loops, passes }
}

fn a_loop(random: &mut Random, space: &SpaceSpec, shapes: &[Vec<usize>]) -> LoopSpec {
    let bounds = space.bounds();
    let mut accesses = Vec::new();
    for number in 0..1 + random.below(4) {
        let array = if number == 0 { 0 } else { random.below(shapes.len()) };
        let last = shapes[array].len() - 1;
        let subscripts = (0..=last).map(|dim| match random.below(10) {
            // The first access makes the loop irregular.
            _ if number == 0 && dim == 0 => Subscript::Unknown,
            0 | 1 => Subscript::Index(Affine::constant(random.below(2) as i64)),
            2 if dim == last && dim > 0 => Subscript::Full,
            3 => {
                let start = random.within(0, 2);
                let end = start + random.within(0, 2);
                Subscript::Range(Affine::constant(start), Affine::constant(end))
            }
            4 => Subscript::Index(above(Affine::var(random.below(bounds.len())), 0, &bounds)),
            _ => Subscript::Unknown,
        });
        let subscripts = subscripts.collect();
        let modes = [Mode::Update, Mode::Write, Mode::Read];
        let mode = if number == 0 { *random.pick(&modes[..2]) } else { *random.pick(&modes) };
        let text = format!("access {number} to array {array}");
        accesses.push(Access { array, subscripts, mode, text, line: 0 });
    }
    let order = if random.percent(60) { Order::Ordered } else { Order::Unordered };
    let element_bytes = *random.pick(&[8, 1 << 12, 1 << 16, 1 << 16]);
    LoopSpec { order, inner: Vec::new(), element_bytes, inspected: true, accesses }
}
