//! Aggregation over the areas of many writers.
use hectare::prelude::*;
use hectare::{Number, Reducer};

const LEN: usize = 1003;

/// The value of input `input` at `index`.
fn value(input: usize, index: usize) -> f32 {
    match (input + index) % 17 {
        0 => -1.5e8,
        other => (other as f32 - 7.3) * (index as f32 + 0.7),
    }
}

fn inputs<T: hectare::Element>(worker: &Worker, count: usize) -> Vec<Area<T>> {
    (0..count).map(|input| worker.attach_here(&format!("in/{input}")).unwrap()).collect()
}

/// Runs `act` with a reducer of as many inputs as there are workers, or more.
fn reduce(
    workers: usize,
    count: usize,
    act: impl Fn(&mut Reducer<f32>, &mut Worker) -> Result<()> + Sync,
) -> Vec<Vec<f32>> {
    let members: Vec<Rank> = (0..workers as Rank).collect();
    Job::embedded()
        .unwrap()
        .run(workers, |worker| {
            let mut mine: Vec<Owned<f32>> = (worker.rank() as usize..count)
                .step_by(workers)
                .map(|input| {
                    let mut area = worker.create::<f32>(format!("in/{input}"), LEN).unwrap();
                    let mut guard = area.write(worker).unwrap();
                    (0..LEN).for_each(|index| guard.set(index, value(input, index)));
                    area
                })
                .collect();
            worker.barrier().unwrap();
            let inputs = inputs(worker, count);
            let mut reducer = Reducer::new(worker, "out", &members, inputs).unwrap();
            act(&mut reducer, worker).unwrap();
            let mut out = vec![0.0; LEN];
            reducer.copy_to(worker, &mut out).unwrap();
            assert_eq!(reducer.get(worker, LEN - 1).unwrap().to_bits(), out[LEN - 1].to_bits());
            mine.clear();
            out
        })
        .unwrap()
}

fn expected(count: usize, combine: impl Fn(f32, f32) -> f32, finish: impl Fn(f32) -> f32) -> Vec<f32> {
    (0..LEN)
        .map(|index| finish((1..count).fold(value(0, index), |sum, input| combine(sum, value(input, index)))))
        .collect()
}

#[test]
fn sums_means_and_maxima_have_the_same_bits_for_every_worker_count() {
    for workers in [1, 2, 3, 5] {
        for out in reduce(workers, 5, |reducer, worker| reducer.sum(worker)) {
            assert_eq!(out, expected(5, |a, b| a + b, |sum| sum), "{workers} workers");
        }
        for out in reduce(workers, 5, |reducer, worker| reducer.mean(worker)) {
            assert_eq!(out, expected(5, |a, b| a + b, |sum| sum / 5.0), "{workers} workers");
        }
        for out in reduce(workers, 5, |reducer, worker| reducer.max(worker)) {
            assert_eq!(out, expected(5, f32::max, |max| max), "{workers} workers");
        }
    }
}

#[test]
fn a_function_of_ones_own() {
    for out in reduce(3, 4, |reducer, worker| {
        let first = reducer.range().start;
        reducer.with(worker, |out, inputs| {
            for (index, out) in out.iter_mut().enumerate() {
                *out = inputs.iter().enumerate().map(|(input, view)| view[index] * input as f32).sum::<f32>()
                    + (first + index) as f32;
            }
        })
    }) {
        for (index, out) in out.iter().enumerate() {
            let sum: f32 = (0..4).map(|input| value(input, index) * input as f32).sum();
            assert_eq!(*out, sum + index as f32);
        }
    }
}

#[test]
fn nan_and_infinities_come_through() {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1.0];
    let job = Job::embedded().unwrap();
    job.run(2, |worker| {
        let mut mine = worker.create::<f64>(format!("in/{}", worker.rank()), 25).unwrap();
        let mut guard = mine.write(worker).unwrap();
        for index in 0..25 {
            guard.set(index, special[if worker.rank() == 0 { index / 5 } else { index % 5 }]);
        }
        worker.barrier().unwrap();
        let inputs = inputs(worker, 2);
        let mut reducer = Reducer::<f64>::new(worker, "out", &[1, 0], inputs).unwrap();
        for step in 0..3 {
            match step {
                0 => reducer.sum(worker).unwrap(),
                1 => reducer.mean(worker).unwrap(),
                _ => reducer.max(worker).unwrap(),
            }
            for index in 0..25 {
                let (a, b) = (special[index / 5], special[index % 5]);
                let expected = [a + b, (a + b) / 2.0, a.larger(b)][step];
                let got = reducer.get(worker, index).unwrap();
                assert!(got == expected || (got.is_nan() && expected.is_nan()), "{a} and {b}: {got}");
                assert_eq!(got.is_nan(), a.is_nan() || b.is_nan() || (step < 2 && (a + b).is_nan()));
            }
            // Nobody starts the next run while somebody still reads this one.
            worker.barrier().unwrap();
        }
    })
    .unwrap();
}

#[test]
fn the_last_writer_of_each_element_wins() {
    let job = Job::embedded().unwrap();
    job.run(3, |worker| {
        let me = worker.rank();
        let mut mine = worker.create::<u32>(format!("in/{me}"), 300).unwrap();
        worker.barrier().unwrap();
        let inputs = inputs(worker, 3);
        let mut reducer = Reducer::<u32>::new(worker, "out", &[0, 1, 2], inputs).unwrap();
        let mut model = vec![0u32; 300];
        for round in 1..20u32 {
            for writer in 0..3 {
                for index in (0..300u32).filter(|index| (index * 7 + round * 13 + writer * 5) % 11 == 0) {
                    let value = round * 1000 + writer;
                    model[index as usize] = value;
                    if writer == me {
                        mine.write(worker).unwrap().set(index as usize, value);
                    }
                }
            }
            reducer.last_writer(worker).unwrap();
            let mut out = vec![0; 300];
            reducer.copy_to(worker, &mut out).unwrap();
            assert_eq!(out, model, "round {round}");
        }
    })
    .unwrap();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let short = worker.create::<f32>("short", 3).unwrap().area();
    let _long = worker.create::<f32>("long", 4).unwrap();
    let long = _long.area();
    let refused = |result: Result<Reducer<f32>>| matches!(result, Err(Error::InvalidArea { .. }));
    assert!(refused(Reducer::new(&mut worker, "none", &[0], Vec::new())));
    assert!(refused(Reducer::new(&mut worker, "lengths", &[0], vec![short, long.clone()])));
    assert!(refused(Reducer::new(&mut worker, "member", &[1], vec![long.clone()])));
    assert!(refused(Reducer::new(&mut worker, "twice", &[0, 0], vec![long.clone()])));
    let reducer = Reducer::new(&mut worker, "fine", &[0], vec![long]).unwrap();
    assert!(matches!(reducer.get(&worker, 4), Err(Error::OutOfRange { .. })));
    assert!(matches!(reducer.copy_to(&worker, &mut [0.0; 3]), Err(Error::OutOfRange { .. })));
}
