//! How many of the loops that their dependences let run in parallel do so, wherever their arrays lie.
use super::task_graph;
use crate::common::random::Random;
use hectare_dependence::analysis::analyze;
use hectare_dependence::in_place::CheckTasks;
use hectare_dependence::loop_nest::{
    Access, Affine, LoopNest, LoopVar, Mode, NamedArray, Order, Space, Subscript,
};
use hectare_dependence::schedule::{Candidate, Team, Uncut, Verdict, choose};

/// A dense loop over one to three variables: accesses to one or two arrays at affine subscripts, often the same up to a constant.
fn nest(random: &mut Random) -> LoopNest {
    let dims = *random.pick(&[1, 2, 2, 2, 3]);
    let extent = [4000, 64, 16][dims - 1];
    let order = *random.pick(&[Order::Ordered, Order::Unordered]);
    let vars = ["i", "j", "k"][..dims].iter();
    let vars = vars.map(|name| LoopVar { name: (*name).into(), bounds: Some((0, extent)) }).collect();
    let mut nest = LoopNest::new("random", order, Space::Dense, vars);
    let ranks = [1 + random.below(2), 1 + random.below(dims)];
    for number in 0..1 + random.below(4) {
        let array = random.below(2);
        let last = nest.accesses.iter().rfind(|access| access.array == array).cloned();
        let subscripts = match last {
            Some(last) if random.percent(60) => {
                let shifted = |subscript: &Subscript, by: i64| match subscript {
                    Subscript::Index(index) => Subscript::Index(index.plus(&Affine::constant(by))),
                    other => other.clone(),
                };
                last.subscripts.iter().map(|one| shifted(one, random.within(-2, 2))).collect()
            }
            _ => (0..ranks[array]).map(|_| Subscript::Index(form(random, dims))).collect(),
        };
        let mode = *random.pick(&[Mode::Read, Mode::Write, Mode::Write, Mode::Update]);
        nest.accesses.push(Access { array, subscripts, mode, text: "a".into(), line: number as u32 });
    }
    // Subscripts begin at zero, and arrays are as large as they have to be.
    for (array, rank) in ranks.into_iter().enumerate() {
        let mut shape = Vec::new();
        for dim in 0..rank {
            let of_dim = |access: &Access| match &access.subscripts[dim] {
                Subscript::Index(index) => index.clone(),
                _ => Affine::constant(0),
            };
            let indices: Vec<Affine> =
                nest.accesses.iter().filter(|access| access.array == array).map(of_dim).collect();
            let at = |index: &Affine, most: bool| {
                let terms = index.coefficients.iter();
                index.constant
                    + terms.map(|c| if (*c > 0) == most { c * (extent - 1) } else { 0 }).sum::<i64>()
            };
            let low = indices.iter().map(|index| at(index, false)).min().unwrap_or(0);
            let high = indices.iter().map(|index| at(index, true)).max().unwrap_or(0);
            for access in nest.accesses.iter_mut().filter(|access| access.array == array) {
                if let Subscript::Index(index) = &mut access.subscripts[dim] {
                    *index = index.plus(&Affine::constant(-low));
                }
            }
            shape.push((high - low + 1) as usize);
        }
        nest.arrays.push(NamedArray { name: format!("a{array}"), shape, element_bytes: 8 });
    }
    nest
}

fn form(random: &mut Random, dims: usize) -> Affine {
    let mut form = Affine::constant(random.within(-4, 4));
    for _ in 0..*random.pick(&[0, 1, 1, 1, 1, 2, 2, 3]) {
        let factor = *random.pick(&[1, 1, 1, -1, -1, 2, -2, 3]);
        form = form.plus(&Affine::var(random.below(dims)).times(factor));
    }
    form
}

/// Whether the schedule keeps the dependences: it is not refused, or only because the arrays cannot be cut for it.
fn keeps_dependences(candidate: &Candidate) -> bool {
    let Verdict::Refused(why) = &candidate.verdict else { return candidate.name != "serial" };
    why.contains("cannot be cut")
}

fn is_possible(candidate: &Candidate) -> bool {
    candidate.name != "serial" && !matches!(candidate.verdict, Verdict::Refused(_))
}

/// Of random loops for which a parallel schedule, one of one dimension or a rotation keeps the dependences, at most one of fifty has
/// none that its arrays allow.
#[test]
fn few_parallel_loops_are_serial_for_their_arrays() {
    let (mut parallel, mut serial) = (0, Vec::new());
    for seed in 0..if cfg!(debug_assertions) { 800 } else { 4000 } {
        let nest = nest(&mut Random(seed));
        let dependences = analyze(&nest);
        let cut = |dim: usize, cells: usize| {
            let (start, end) = nest.dims[dim].bounds.unwrap();
            (0..=cells as i64).map(|cell| start + (end - start) * cell / cells as i64).collect()
        };
        let team = Team {
            uncut: Some(Uncut::InPlace(CheckTasks(&task_graph::check))),
            ..Team::of_one_host(2, false)
        };
        let choice = choose(&nest, &dependences, None, &cut, team).unwrap();
        if choice.candidates.iter().any(keeps_dependences) {
            parallel += 1;
            if !choice.candidates.iter().any(is_possible) {
                serial.push((seed, nest, choice.candidates));
            }
        }
    }
    println!("{} of {parallel} loops are serial for their arrays alone", serial.len());
    assert!(parallel > 200, "{parallel}");
    for (seed, nest, candidates) in serial.iter().take(4) {
        println!("{seed}: {:?} {candidates:?}", nest.accesses);
    }
    assert!(serial.len() * 50 <= parallel, "{} of {parallel}", serial.len());
}
