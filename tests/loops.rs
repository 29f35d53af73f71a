//! Loops on processes of one job: the bits that threads give; a worker that is killed inside a loop; going on
//! from a checkpoint with fewer workers.
use crate::common::*;
use hectare::orion::accumulate::Sum;
use hectare::orion::execute::{LoopHead, entry_parts};
use hectare::orion::loop_nest::{Access, Affine, LoopNest, Mode, Order, Subscript};
use hectare::orion::relax::Relaxation;
use hectare::orion::schedule::{Dynamic, Schedule};
use hectare::orion::{Context, Error, Result, Site};
use hectare::{DistArray, SparseArray};
use std::path::{Path, PathBuf};

const USERS: usize = 90;
const ITEMS: usize = 70;
const RANK: usize = 5;
const RATINGS: usize = 4000;

/// The state of the program: hashes, so that any other order of conflicting iterations gives other bits.
struct State {
    r: SparseArray<u64, 2>,
    u: DistArray<u64, 2>,
    v: DistArray<u64, 2>,
}

fn begin(w: &mut Context<'_>) -> Result<State> {
    let mut random = Random(5);
    let list: Vec<([usize; 2], u64)> =
        (0..RATINGS).map(|_| ([random.below(USERS), random.below(ITEMS)], random.next())).collect();
    Ok(State {
        r: w.entries([USERS, ITEMS], RATINGS, |k| list[k])?,
        u: w.from_fn([USERS, RANK], |[i, k]| (i * 31 + k) as u64)?.named("u"),
        v: w.from_fn([ITEMS, RANK], |[j, k]| (j * 37 + k) as u64)?.named("v"),
    })
}

fn mix(a: &mut [u64], b: &mut [u64], x: u64) -> u64 {
    for (a, b) in a.iter_mut().zip(b) {
        let was = *a;
        *a = a.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ *b ^ x;
        *b = b.rotate_left(7).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ was ^ x;
    }
    x
}

fn pass(w: &mut Context<'_>, state: &mut State, each: impl Fn() + Sync) -> Result<u64> {
    pass_by(w, state, None, each)
}

fn pass_by(
    w: &mut Context<'_>,
    state: &mut State,
    schedule: Option<&dyn Schedule>,
    each: impl Fn() + Sync,
) -> Result<u64> {
    let State { r, u, v } = state;
    let head = LoopHead {
        site: Site::here(),
        order: Order::Unordered,
        variables: &["i", "j"],
        arrays: &["u", "v"],
        invariants: &[],
        captured: &[],
        schedule,
        relax: Relaxation::default(),
    };
    let describe = |nest: &mut LoopNest| {
        for (array, text) in ["u.row_mut(i)", "v.row_mut(j)"].into_iter().enumerate() {
            let subscripts = vec![Subscript::Index(Affine::var(array)), Subscript::Full];
            nest.accesses.push(Access { array, subscripts, mode: Mode::Update, text: text.into(), line: 0 });
        }
    };
    let (sum,) = w.run_loop(&head, &*r, (u, v), (Sum::<u64>::new(),), &describe, |entries, (u, v)| {
        let mut sum = 0u64;
        for entry in entries {
            let ([i, j], x) = entry_parts(entry);
            each();
            sum = sum.wrapping_add(mix(u.row_mut(i), v.row_mut(j), *x));
        }
        (sum,)
    })?;
    Ok(sum)
}

fn fingerprint(w: &Context<'_>, state: &State) -> u64 {
    let all = state.u.to_vec(w).unwrap().into_iter().chain(state.v.to_vec(w).unwrap());
    all.fold(0, |hash: u64, value| hash.rotate_left(3).wrapping_mul(31) ^ value)
}

fn train(w: &mut Context<'_>, passes: usize) -> Result<Vec<u64>> {
    let mut state = begin(w)?;
    let mut seen = Vec::new();
    for _ in 0..passes {
        seen.push(pass(w, &mut state, || ())?);
        seen.push(fingerprint(w, &state));
    }
    Ok(seen)
}

#[test]
fn processes_give_the_bits_that_threads_give() {
    as_processes("processes_give_the_bits_that_threads_give", None, |w| {
        let ours = train(w, 4).unwrap();
        w.agree(&ours).unwrap();
        if w.rank() == 0 {
            let theirs = hectare::run(3, |w| train(w, 4)).unwrap();
            assert!(theirs.iter().all(|theirs| *theirs == ours));
        }
    });
}

#[test]
fn a_worker_killed_in_a_tile_that_came_free_is_named() {
    as_processes("a_worker_killed_in_a_tile_that_came_free_is_named", Some(1), |w| {
        let mut state = begin(w).unwrap();
        let sum = pass_by(w, &mut state, Some(&Dynamic), || ()).unwrap();
        assert_eq!(pass_by(w, &mut state, Some(&Dynamic), || ()).unwrap(), sum);
        assert!(w.explain()[0].is_dynamic);
        let me = w.rank();
        let failed = pass_by(w, &mut state, Some(&Dynamic), || {
            if me == 1 {
                // SAFETY: ends this process, as the kernel would when memory runs out.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
        })
        .unwrap_err();
        assert!(matches!(failed, Error::WorkerLost { rank: 1, .. }), "{failed}");
        let refused = state.u.read(w).unwrap_err();
        assert!(matches!(&refused, Error::Poisoned { array, .. } if array == "u"), "{refused}");
    });
}

fn checkpoint_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("hectare-loops-{name}-{}.ckpt", std::process::id()))
}

fn save(w: &mut Context<'_>, state: &State, pass: u64, path: &Path) -> Result<()> {
    w.save_checkpoint(path, |file| {
        file.value("pass", &pass)?;
        file.array("u", &state.u)?;
        file.array("v", &state.v)
    })
}

#[test]
fn a_worker_killed_inside_a_loop_is_named_and_the_run_resumes() {
    let name = "a_worker_killed_inside_a_loop_is_named_and_the_run_resumes";
    let path = std::env::var("HECTARE_TEST_FILE").map_or_else(|_| checkpoint_file("killed"), PathBuf::from);
    // SAFETY: the children of this test inherit it; a test binary's other tests do not read the environment
    // while this one begins, apart from their role.
    unsafe { std::env::set_var("HECTARE_TEST_FILE", &path) };
    let passes = 6;
    as_processes(name, Some(2), |w| {
        let mut state = begin(w).unwrap();
        for number in 1..=3 {
            pass(w, &mut state, || ()).unwrap();
            save(w, &state, number, &path).unwrap();
        }
        let me = w.rank();
        let failed = pass(w, &mut state, || {
            if me == 2 {
                // SAFETY: ends this process, as the kernel would when memory runs out.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
        })
        .unwrap_err();
        assert!(matches!(failed, Error::WorkerLost { rank: 2, .. }), "{failed}");
        // The pass is lost; its arrays say so.
        let refused = state.u.read(w).unwrap_err();
        assert!(matches!(&refused, Error::Poisoned { array, .. } if array == "u"), "{refused}");
    });
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let whole = hectare::run(3, |w| train(w, passes)).unwrap();
    for workers in [3, 2] {
        let resumed = hectare::run(workers, |w| {
            let mut state = begin(w)?;
            let file = w.open_checkpoint(&path)?.expect("a checkpoint");
            let done: u64 = file.value("pass")?;
            (state.u, state.v) = (file.array(w, "u")?.named("u"), file.array(w, "v")?.named("v"));
            assert_eq!((done, fingerprint(w, &state)), (3, whole[0][5]));
            for _ in done..passes as u64 {
                pass(w, &mut state, || ())?;
            }
            Ok(fingerprint(w, &state))
        })
        .unwrap();
        // With as many workers as before, as if nothing had happened; with fewer, all agree.
        assert!(resumed.iter().all(|hash| *hash == resumed[0]));
        assert!(workers != 3 || resumed[0] == whole[0][2 * passes - 1]);
    }
    std::fs::remove_file(&path).unwrap();
}
