//! The cost of an area where there are many: to create, attach and delete one, and in a round that looks for those that
//! changed. One worker; small areas of 64 floats, with one reader copy and a log; also of 8192 floats (32 kB), whose memory is taken
//! from the system for each.
//!
//! `cargo bench --bench areas [-- --quick] [-- --json FILE]`
mod support;

use hectare::{Job, Owned, Worker};
use hectare_testing::Random;
use support::{Case, Report, Times, nanos};

/// Areas that are there, and the aims: microseconds to create and to attach, and for an empty round.
const COUNTS: [usize; 3] = [10, 1_000, 10_000];
const AIMS: [(&str, f64); 3] = [("create", 20.0), ("attach", 1.0), ("round/empty", 1.0)];

fn main() {
    let mut report = Report::from_args("areas: one worker, small areas");
    for count in COUNTS {
        if report.wants(&format!("/{count}")) {
            measure(&mut report, count);
        }
    }
    if report.wants("create/32 kB") {
        larger(&mut report);
    }
    report.finish();
}

fn name(number: usize) -> String {
    format!("model/layer/{number}")
}

fn create(worker: &mut Worker, number: usize) -> Owned<f32> {
    worker.create(name(number), 64).expect("memory")
}

/// Microseconds to create an area of 32 kB.
fn larger(report: &mut Report) {
    let job = Job::builder().reserve(1 << 32).embedded().expect("a job");
    let mut worker = job.worker().expect("a slot");
    let mut created = Times::default();
    for _ in 0..if report.quick { 20 } else { 60 } {
        let mut more = Vec::new();
        let mut one = |number| worker.create::<f32>(name(number), 8192).expect("memory");
        created.push(nanos(|| more.extend((0..50).map(&mut one))) / 50.0 / 1e3);
        more.drain(..).for_each(|area: Owned<f32>| area.delete(&mut worker).expect("owned"));
        (0..3).for_each(|_| _ = worker.sync().expect("a round"));
    }
    report.add(Case {
        case: "create/32 kB".into(),
        value: created.median(),
        best: created.best(),
        unit: "us",
        ratio: None,
        against: None,
        target: None,
    });
}

fn measure(report: &mut Report, count: usize) {
    let job = Job::builder().reserve(1 << 32).max_areas(1 << 14).embedded().expect("a job");
    let mut worker = job.worker().expect("a slot");
    let mut areas: Vec<Owned<f32>> = (0..count).map(|number| create(&mut worker, number)).collect();
    let (blocks, each) = if report.quick { (20, 100) } else { (60, 200) };
    let mut random = Random(7);
    let (mut created, mut deleted, mut attached) = (Times::default(), Times::default(), Times::default());
    let (mut empty, mut one) = (Times::default(), Times::default());
    for _ in 0..blocks {
        let numbers = count..count + each;
        let mut more = Vec::with_capacity(each);
        created.push(
            nanos(|| more.extend(numbers.map(|number| create(&mut worker, number)))) / each as f64 / 1e3,
        );
        worker.sync().expect("a round");
        deleted.push(
            nanos(|| more.drain(..).for_each(|area| area.delete(&mut worker).expect("owned")))
                / each as f64
                / 1e3,
        );
        // Their memory is given back after a grace round.
        (0..3).for_each(|_| _ = worker.sync().expect("a round"));
        let names: Vec<String> = (0..each).map(|_| name(random.next() as usize % count)).collect();
        let attach = |name: &String| drop(worker.attach::<f32>(name).expect("it is there"));
        attached.push(nanos(|| names.iter().for_each(attach)) / each as f64 / 1e3);
        empty.push(nanos(|| (0..each).for_each(|_| drop(worker.sync()))) / each as f64 / 1e3);
        let rounds = nanos(|| {
            for _ in 0..each {
                let area = &mut areas[random.next() as usize % count];
                area.write(&worker).expect("owned").set(5, 1.0);
                worker.sync().expect("a round");
            }
        });
        one.push(rounds / each as f64 / 1e3);
    }
    let rows = [
        ("create", created),
        ("attach", attached),
        ("delete", deleted),
        ("round/empty", empty),
        ("round/one dirty", one),
    ];
    for (what, times) in rows {
        let aim = AIMS.iter().find(|(name, _)| *name == what).map(|(_, aim)| *aim);
        report.add(Case {
            case: format!("{what}/{count}"),
            value: times.median(),
            best: times.best(),
            unit: "us",
            ratio: aim.map(|aim| aim / times.median()),
            against: aim.map(|aim| format!("the aim, {aim} us")),
            target: aim.map(|_| 1.0),
        });
    }
}
