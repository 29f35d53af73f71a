//! The cost of mode serial of the matrix completion example beside its arithmetic: updates per second in `f32`,
//! against a plain loop over two slices with the same kernel.
//!
//! `cargo bench --bench serial [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../apps/matrix_completion/src/main.rs"]
mod matrix_completion;
mod support;

use matrix_completion::data::{DataSet, Rating};
use matrix_completion::generate::{Size, generate};
use matrix_completion::kernel::{Kernel, Kernels, Pass, Step};
use matrix_completion::model::{Layout, Model};
use matrix_completion::modes::serial;
use matrix_completion::options::Schedule;
use matrix_completion::random::Random;
use matrix_completion::train::Training;
use std::ops::ControlFlow;
use support::{Case, Report, Times, alternate, nanos};

fn main() {
    let mut report =
        Report::from_args("serial: updates per second of mode serial, f32, ratings like MovieLens-1M's");
    let mut data = DataSet::new(&generate(Size::MOVIELENS_1M, 1), &[]).expect("a few ratings");
    Random::new(1, "order").shuffle(&mut data.train);
    for rank in [16, 32, 100] {
        measure(&mut report, &data, rank);
    }
    report.finish();
}

fn measure(report: &mut Report, data: &DataSet, rank: usize) {
    let case = format!("serial/rank {rank}");
    if !report.wants(&case) {
        return;
    }
    let layout = Layout::new::<f32>(rank, Step::Fixed);
    let kernels = Kernels::new(layout.lines, Step::Fixed);
    let schedule = Schedule { lr: 0.02, decay: 1.0, reg: 0.04 };
    let training = Training { kernels, ratings: &data.train, schedule, epochs: 1, files: &[], idle_turns: 0 };
    let model = || Model::<f32>::new(data.users, data.items, layout, 1).expect("memory");
    let (mut ours, mut theirs) = (model(), model());
    let ours = || {
        let mut time = 0.0;
        serial::train(&training, &mut ours, &mut |end| {
            time = end.time.as_nanos() as f64;
            ControlFlow::Continue(())
        });
        time
    };
    let plain = || {
        let (users, items) = (theirs.users.as_mut_slice(), theirs.items.as_mut_slice());
        nanos(|| kernels.run(schedule.rate(0), Plain { users, items, ratings: &data.train }))
    };
    let (blocks, repeats) = if report.quick { (5, 5) } else { (20, 10) };
    let (ours, plain) = alternate(blocks, repeats, ours, plain);
    let speed = |time: f64| data.train.len() as f64 / time * 1e3;
    report.add(Case {
        case,
        value: speed(ours.median()),
        best: speed(ours.best()),
        unit: "M updates/s",
        ratio: Some(plain.median() / ours.median()),
        against: Some(against(&plain, speed)),
        target: Some(0.95),
    });
}

fn against(plain: &Times, speed: impl Fn(f64) -> f64) -> String {
    format!("a plain loop ({:.1}, best {:.1} M updates/s)", speed(plain.median()), speed(plain.best()))
}

/// The loop that one would write first.
struct Plain<'a> {
    users: &'a mut [f32],
    items: &'a mut [f32],
    ratings: &'a [Rating],
}

impl Pass<f32> for Plain<'_> {
    type Out = ();

    #[inline(always)]
    fn run<K: Kernel<f32>>(self, kernel: K) {
        let stride = kernel.stride();
        for rating in self.ratings {
            let user = &mut self.users[rating.user as usize * stride..][..stride];
            let item = &mut self.items[rating.item as usize * stride..][..stride];
            kernel.update(user, item, rating.value);
        }
    }
}
