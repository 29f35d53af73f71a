//! The cost of giving an area to another worker, against passing a token through an `AtomicU32`.
//!
//! `cargo bench --bench handover [-- --quick] [-- --json FILE]`
mod support;

use hectare::{AreaSpec, Job};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use support::gate::Gate;
use support::{Case, Report, Times};

fn main() {
    let mut report = Report::from_args("handover: nanoseconds per pass, 2 workers on 2 cores, ping-pong");
    ping_pong(&mut report, "handover/bare", false, 0.8);
    ping_pong(&mut report, "handover/line written and logged", true, 0.55);
    report.finish();
}

fn ping_pong(report: &mut Report, case: &str, write: bool, target: f64) {
    if !report.wants(case) {
        return;
    }
    let (blocks, passes) = if report.quick { (12, 20_000u32) } else { (40, 50_000) };
    let job = Job::builder().pin_cores(true).embedded().expect("a job");
    let gate = Gate::new(2);
    let token = AtomicU32::new(0);
    let results = job.run(2, |worker| {
        let me = worker.rank();
        let mut owned = (me == 0).then(|| worker.create::<u64>(AreaSpec::new("token"), 64).expect("memory"));
        worker.barrier().expect("a barrier");
        let area = worker.attach::<u64>("token").expect("created before the barrier");
        let (mut ours, mut plain) = (Times::default(), Times::default());
        for block in 0..blocks {
            gate.pass();
            let start = Instant::now();
            for pass in 0..passes {
                let mut mine = owned.take().unwrap_or_else(|| area.take(worker).expect("given"));
                if write {
                    mine.write(worker).expect("owned").set(0, u64::from(pass));
                }
                mine.give(worker, 1 - me).expect("the other lives");
            }
            if me == 0 {
                owned = Some(area.take(worker).expect("given back"));
            }
            let time = start.elapsed().as_nanos() as f64 / f64::from(2 * passes);
            gate.pass();
            let start = Instant::now();
            for _ in 0..passes {
                while token.load(Ordering::Acquire) != me {
                    std::hint::spin_loop();
                }
                token.store(1 - me, Ordering::Release);
            }
            while me == 0 && token.load(Ordering::Acquire) != 0 {
                std::hint::spin_loop();
            }
            if block > 0 {
                ours.push(time);
                plain.push(start.elapsed().as_nanos() as f64 / f64::from(2 * passes));
            }
        }
        (ours, plain)
    });
    let (ours, plain) = results.expect("no panics").swap_remove(0);
    report.add(Case {
        case: case.into(),
        value: ours.median(),
        best: ours.best(),
        unit: "ns",
        ratio: Some(plain.median() / ours.median()),
        against: Some(format!("AtomicU32 ping-pong ({:.0} ns)", plain.median())),
        target: Some(target),
    });
}
