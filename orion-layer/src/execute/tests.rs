//! Whether the checks of random loops notice faults in the executor.
use crate::common::check::check;
use crate::common::oracle::any_wavefront;
use crate::common::random::Random;
use crate::common::running::{Options, run_case};
use crate::common::schedules::Arbitrary;
use crate::common::watchdog::watched;
use crate::common::{generate, irregular, neighbours};
use crate::mutant::{self, Mutant};
use hectare_dependence::mutant as of_schedules;
use hectare_dependence::schedule::{Rotation, Schedule};
use std::sync::atomic::AtomicU64;

/// A fault of the executor, or of the schedules that it is given.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Executor(Mutant),
    Schedules(of_schedules::Mutant),
}

/// Runs something with this fault on this thread, or without one.
fn with<R>(fault: Option<Fault>, run: impl FnOnce() -> R) -> R {
    match fault {
        Some(Fault::Executor(mutant)) => mutant::with(mutant, run),
        Some(Fault::Schedules(mutant)) => of_schedules::with(Some(mutant), run),
        None => run(),
    }
}

/// Who chooses the schedules.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Runtime,
    /// Rotations over the first two dimensions where there are two: refused for some of the loops.
    Rotation,
    /// A random schedule: refused for some of the loops.
    Arbitrary {
        broken: bool,
    },
    /// A random wavefront over loops that use neighbours: refused for most.
    Wavefront,
    /// The runtime, of loops whose subscripts come from data.
    Inspector,
}

/// Runs a random case with a fault. An error is what the checks found, or what the loop itself refused.
fn run(fault: Option<Fault>, choice: Choice, seed: u64) -> Result<(), String> {
    let case = match choice {
        Choice::Wavefront => neighbours::case(seed),
        Choice::Inspector => irregular::case(seed),
        _ => generate::case(seed),
    };
    let wavefront = any_wavefront(&mut Random(seed));
    let rotation = Rotation::over(if case.space.dims() > 1 { vec![0, 1] } else { vec![0] });
    let arbitrary = Arbitrary { seed, broken: matches!(choice, Choice::Arbitrary { broken: true }) };
    let schedule: Option<&(dyn Schedule + Sync)> = match choice {
        Choice::Runtime | Choice::Inspector => None,
        Choice::Wavefront => Some(&wavefront),
        Choice::Rotation => Some(&rotation),
        Choice::Arbitrary { .. } => Some(&arbitrary),
    };
    let clock = AtomicU64::new(0);
    let options = Options { schedule, slow: false };
    let what = format!("{fault:?}, {choice:?}, case {seed}");
    let workers = 2 + seed as usize % 3;
    let passes =
        watched(&what, || crate::run(workers, |w| with(fault, || run_case(w, &case, &clock, options))));
    check(&case, &passes.map_err(|error| error.to_string())?)
}

/// Which of the first `cases` cases gives away the fault: one that goes well without it.
fn noticed(fault: Fault, choice: Choice, cases: u64) -> Option<String> {
    (0..cases).find_map(|seed| {
        let what = run(Some(fault), choice, seed).err()?;
        run(None, choice, seed).ok().map(|()| what)
    })
}

#[test]
fn random_loops_notice_every_fault_of_the_executor() {
    let faults = [
        Fault::Executor(Mutant::EarlyGive),
        Fault::Executor(Mutant::TileTwice),
        Fault::Executor(Mutant::TileOmitted),
        Fault::Executor(Mutant::WrongOwner),
        Fault::Executor(Mutant::StaleEntries),
        Fault::Executor(Mutant::Unsorted),
        Fault::Executor(Mutant::LostPartial),
        Fault::Schedules(of_schedules::Mutant::EmptyPart),
    ];
    for fault in faults {
        let what = noticed(fault, Choice::Runtime, 300);
        assert!(what.is_some(), "{fault:?} survives");
        println!("{fault:?}: {}", what.unwrap_or_default());
    }
}

#[test]
fn a_conflict_that_is_dropped_from_the_graph_is_noticed() {
    let fault = Fault::Schedules(of_schedules::Mutant::EdgeDropped);
    let what = noticed(fault, Choice::Inspector, 300).expect("the fault survives");
    println!("{what}");
}

/// By the core, whatever the scheduler thinks of it.
#[test]
fn random_wavefronts_that_begin_early_or_are_skewed_the_wrong_way_are_refused() {
    let races =
        |result: &Result<(), String>| result.as_ref().is_err_and(|what| what.contains("may run at once"));
    for mutant in [of_schedules::Mutant::WavefrontEarly, of_schedules::Mutant::SkewSign] {
        let found = (0..300).any(|seed| {
            let wrong = run(Some(Fault::Schedules(mutant)), Choice::Wavefront, seed);
            races(&wrong) && !races(&run(None, Choice::Wavefront, seed))
        });
        assert!(found, "{mutant:?} survives");
    }
}

#[test]
fn a_rotation_out_of_step_is_refused() {
    let what = noticed(Fault::Schedules(of_schedules::Mutant::RotationAhead), Choice::Rotation, 300)
        .expect("the fault survives");
    assert!(what.contains("would run conflicting iterations at once"), "{what}");
}

#[test]
fn random_schedules_notice_faults_of_the_verification() {
    for fault in [
        Fault::Schedules(of_schedules::Mutant::CellsTwice),
        Fault::Schedules(of_schedules::Mutant::CellsMissing),
    ] {
        // Wrong schedules that are accepted now: the checks find what is wrong with what they did.
        let found = (0..300).any(|seed| {
            let choice = Choice::Arbitrary { broken: true };
            let refused = run(None, choice, seed).is_err_and(|what| what.contains("is refused"));
            refused && run(Some(fault), choice, seed).is_err_and(|what| !what.contains("is refused"))
        });
        assert!(found, "{fault:?} survives");
    }
}

/// A wavefront whose tiles begin one block too early is refused by the core, whatever the scheduler thinks of it.
#[test]
fn a_wavefront_that_waits_too_little_is_refused() {
    use super::task_graph;
    use hectare_dependence::analysis::analyze;
    use hectare_dependence::in_place::CheckTasks;
    use hectare_dependence::loop_nest::{
        Access, Affine, LoopNest, LoopVar, Mode, NamedArray, Order, Space, Subscript,
    };
    use hectare_dependence::schedule::{Team, Uncut, Verdict, choose};

    let dim = |name: &str| LoopVar { name: name.into(), bounds: Some((1, 999)) };
    let mut nest = LoopNest::new("sweep", Order::Ordered, Space::Dense, vec![dim("i"), dim("j")]);
    nest.arrays.push(NamedArray { name: "a".into(), shape: vec![1000, 1000], element_bytes: 8 });
    for (i, j, mode) in [(-1, 1, Mode::Read), (0, -1, Mode::Read), (0, 0, Mode::Update)] {
        let index =
            |dim: usize, shift: i64| Subscript::Index(Affine::var(dim).plus(&Affine::constant(shift)));
        let subscripts = vec![index(0, i), index(1, j)];
        nest.accesses.push(Access { array: 0, subscripts, mode, text: "a".into(), line: 0 });
    }
    let dependences = analyze(&nest);
    let cut = |_: usize, cells: usize| (0..=cells).map(|cell| 1 + (998 * cell / cells) as i64).collect();
    let team =
        Team { uncut: Some(Uncut::InPlace(CheckTasks(&task_graph::check))), ..Team::of_one_host(3, false) };
    let choice =
        |mutant| of_schedules::with(mutant, || choose(&nest, &dependences, None, &cut, team).unwrap());
    let right = choice(None);
    assert!(right.chosen().starts_with("wavefront: i in turn"), "{:?}", right.candidates);
    let early = choice(Some(of_schedules::Mutant::WavefrontEarly));
    assert_eq!(early.chosen(), "serial");
    let refused = early.candidates.iter().find(|one| one.name.starts_with("wavefront")).unwrap();
    assert!(
        matches!(&refused.verdict, Verdict::Refused(why) if why.contains("may run at once")),
        "{refused:?}"
    );
}
