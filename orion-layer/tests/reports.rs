//! Reports and explanations of a loop that runs under several consistencies.
use hectare_orion::relax::{Consistency, Every, LoopReport, Relaxation, Sum};
use hectare_orion::{Context, Result, parallel_for, run};
use std::time::Duration;

const RUNS: [(Consistency, Every, u64); 7] = [
    (Consistency::Bsp, Every::PerPass(4), 1),
    (Consistency::Bounded(1), Every::PerPass(4), 2),
    (Consistency::Bounded(3), Every::PerPass(4), 3),
    (Consistency::UNBOUNDED, Every::PerPass(4), 1),
    (Consistency::Async, Every::PerPass(4), 4),
    (Consistency::Bsp, Every::Time(Duration::from_secs(1)), 2),
    (Consistency::Serializable, Every::PerPass(4), 1),
];

/// One loop under all of them, in turns; and one that relaxes nothing.
fn train(w: &mut Context<'_>) -> Result<()> {
    let mut sums = w.zeros::<u64, 1>([50])?;
    let zeros = w.zeros::<u64, 1>([50])?;
    let (mut more, mut doubles) = (w.buffered(zeros, Sum)?, w.zeros::<u64, 1>([50])?);
    for pass in 0..4 {
        for (consistency, every, _) in RUNS.iter().filter(|(_, _, passes)| *passes > pass) {
            parallel_for!(w, unordered, relax sums, buffer more, consistency = *consistency, every = *every;
            for k in 0..1000 {
                sums.add(k * 7 % 50, 1);
                more.add(k * 7 % 50, 1);
            })?;
        }
        parallel_for!(w, unordered, write doubles; for k in 0..50 { doubles[k] += 2; })?;
    }
    Ok(())
}

#[test]
fn each_consistency_has_a_report_of_its_own() {
    for workers in [1, 2, 3] {
        let all = run(workers, |w| {
            train(w)?;
            w.reports()
        });
        let all = all.unwrap();
        let found = |report: &LoopReport| (report.relax, report.passes);
        let found: Vec<_> = all[0].iter().map(found).collect();
        let expected = RUNS.iter().map(|(consistency, every, passes)| {
            let every = if *consistency == Consistency::Serializable { Every::default() } else { *every };
            (Some(Relaxation { consistency: *consistency, every, ..Relaxation::default() }), *passes)
        });
        assert_eq!(found, expected.chain([(None, 4)]).collect::<Vec<_>>());
        assert!(all.iter().all(|reports| reports == &all[0]));
        // A field of one consistency is in its report alone.
        for report in &all[0] {
            let asynchronous = report.relax.is_some_and(|relax| relax.consistency == Consistency::Async);
            assert_eq!(report.in_place + report.in_copies, if asynchronous { 4 } else { 0 }, "{report}");
            let clocked = report.relax.is_some_and(|relax| relax.consistency != Consistency::Serializable);
            assert_eq!(report.clocks > 0, clocked, "{report}");
        }
        let head = |at: usize| all[0][at].to_string().lines().next().unwrap().to_owned();
        assert!(
            head(1).contains(", consistency = Bounded(1), every = PerPass(4): 2 passes, "),
            "{}",
            head(1)
        );
        assert!(head(6).contains(", consistency = Serializable: 1 pass, "), "{}", head(6));
        assert!(!head(7).contains("consistency"), "{}", head(7));
    }
}

#[test]
fn explanations_say_once_what_is_common() {
    let all = run(2, |w| {
        train(w)?;
        Ok(w.explain())
    });
    let all = &all.unwrap()[0];
    let promises: Vec<Vec<Relaxation>> = all.iter().map(|one| one.relaxes.clone()).collect();
    let relax = |(consistency, every, _): &(Consistency, Every, u64)| Relaxation {
        consistency: *consistency,
        every: *every,
        ..Relaxation::default()
    };
    let same_clocks: Vec<Relaxation> = RUNS[..5].iter().map(relax).collect();
    let serial = Relaxation::default();
    // By time, the loop is cut into other cells; keeping its dependences, it is serial; the last relaxes nothing.
    assert_eq!(promises, [same_clocks, vec![relax(&RUNS[5])], vec![serial], vec![]]);
    let text = all[0].to_string();
    assert_eq!(text.matches("Schedules for 2 workers").count(), 1, "{text}");
    for differs in [
        "  Under consistency = Bsp, every = PerPass(4): reads see the worker's own changes, and everybody's up to its last \
         clock, at which all wait for each other.\n",
        "  Under consistency = Bounded(3), every = PerPass(4): reads see the worker's own changes, and everybody's up to at \
         least 3 clocks ago; workers that are further ahead wait.\n",
        "  Under consistency = Async, every = PerPass(4): relaxed arrays are",
    ] {
        assert_eq!(text.matches(differs).count(), 1, "{text}");
    }
    assert!(all[2].to_string().contains("Under consistency = Serializable: all dependences are preserved"));
    assert!(!all[3].to_string().contains("Under"));
}
