//! Random small nests.
use super::*;

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub(super) fn within(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize]
    }
}

/// A nest of one to three dimensions, small enough to run through all pairs of iterations.
pub(super) fn random_nest(random: &mut Random) -> LoopNest {
    let dims = random.pick(&[1, 2, 2, 2, 3]);
    let largest = [9, 5, 3][dims - 1];
    let order = random.pick(&[Order::Ordered, Order::Unordered]);
    let space = match random.chance(25) {
        true => Space::Entries { array: "entries".into(), count: random.within(0, 20) as usize },
        false => Space::Dense,
    };
    let bounded = |random: &mut Random, name: &str, most: i64| {
        let start = random.within(-2, 2);
        let least = i64::from(!random.chance(3));
        var(name, (start, start + random.within(least, most)))
    };
    let variables = (0..dims).map(|k| bounded(random, ["i", "j", "k"][k], largest)).collect();
    let mut nest = LoopNest::new("random", order, space, variables);
    for k in 0..random.pick(&[0, 0, 1, 1, 2]) {
        let variable = bounded(random, ["m", "n"][k], 3);
        nest.inner.push(variable);
    }
    let ranks = [random.within(1, 3), random.within(1, 2)];
    for _ in 0..random.within(1, 4) {
        let array = random.within(0, 1) as usize;
        let mode = random.pick(&[Mode::Read, Mode::Write, Mode::Write, Mode::Update]);
        let alike =
            nest.accesses.iter().rfind(|access| access.array == array && !access.subscripts.is_empty());
        let subscripts = match alike.cloned() {
            Some(alike) if random.chance(60) => alike.subscripts.iter().map(|s| shifted(random, s)).collect(),
            _ => (0..ranks[array]).map(|_| random_subscript(random, &nest)).collect(),
        };
        access(&mut nest, array, mode, subscripts);
    }
    nest
}

/// The same up to a constant.
fn shifted(random: &mut Random, subscript: &Subscript) -> Subscript {
    match subscript {
        Subscript::Index(index) => Subscript::Index(index.plus(&Affine::constant(random.within(-2, 2)))),
        other => other.clone(),
    }
}

fn random_subscript(random: &mut Random, nest: &LoopNest) -> Subscript {
    let form = random_form(random, nest);
    match random.within(0, 19) {
        0 => Subscript::Full,
        1 => Subscript::Unknown,
        2 | 3 => {
            let end = form.plus(&Affine::constant(random.within(0, 3)));
            Subscript::Range(form, end)
        }
        4 => Subscript::Range(form, random_form(random, nest)),
        _ => Subscript::Index(form),
    }
}

fn random_form(random: &mut Random, nest: &LoopNest) -> Affine {
    let variables = (nest.dims.len() + nest.inner.len()) as i64;
    let mut form = Affine::constant(random.within(-4, 4));
    for _ in 0..random.pick(&[0, 1, 1, 1, 1, 2, 2, 3]) {
        let variable = random.within(0, variables - 1) as usize;
        form = form.plus(&Affine::var(variable).times(random.pick(&[1, 1, 1, -1, -1, 2, -2, 3])));
    }
    form
}
