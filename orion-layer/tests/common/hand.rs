//! Loops described by hand, and their errors.
use super::watchdog::watched;
use hectare_orion::execute::LoopHead;
use hectare_orion::loop_nest::{Access, Affine, Mode, Order, Subscript};
use hectare_orion::relax::Relaxation;
use hectare_orion::{Context, Error, Site, run};

/// The result on each worker; those who fail go on to the end of the program.
pub fn on_each<R: Send>(
    workers: usize,
    program: impl Fn(&mut Context<'_>) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>> {
    watched("a wrong loop", || run(workers, |w| Ok(program(w))).expect("the program itself goes well"))
}

pub fn access(array: usize, subscripts: Vec<Subscript>, mode: Mode, text: &str) -> Access {
    Access { array, subscripts, mode, text: text.into(), line: 0 }
}

pub fn index(form: Affine) -> Vec<Subscript> {
    vec![Subscript::Index(form)]
}

pub fn head<'a>(variables: &'a [&'a str], arrays: &'a [&'a str]) -> LoopHead<'a> {
    let site = Site { file: "wrong.rs", line: 7, column: 1 };
    LoopHead {
        site,
        order: Order::Unordered,
        variables,
        arrays,
        invariants: &[],
        captured: &[],
        schedule: None,
        relax: Relaxation::default(),
    }
}

/// Checks that `culprit` has its own error and that the others have one that names it.
pub fn blames<R: std::fmt::Debug>(results: &[Result<R, Error>], culprit: usize) {
    for (worker, result) in results.iter().enumerate() {
        match result {
            Err(Error::PeerFailed { rank, .. }) if worker != culprit => {
                assert_eq!(*rank as usize, culprit, "worker {worker}: {results:?}");
            }
            Err(error) if worker == culprit => assert!(!matches!(error, Error::PeerFailed { .. }), "{error}"),
            other => panic!("worker {worker}: {other:?}; {results:?}"),
        }
    }
}
