//! Pipelines and maps on processes of one job: what threads give; a worker that is killed while it contributes.
use crate::common::*;
use hectare::orion::collections::{Append, Sum};
use hectare::orion::{Context, Error, Result, parallel_for};

const LINES: usize = 400;

fn line(number: usize) -> String {
    let mut random = Random(number as u64);
    (0..random.below(8)).map(|_| format!("w{} ", random.below(60))).collect()
}

/// The results of a program that counts the same text in several ways.
type Made = (Vec<(String, u64)>, Vec<(String, Vec<u32>)>, Vec<Vec<u32>>, f64);

fn program(w: &mut Context<'_>, each: impl Fn(usize) + Sync) -> Result<Made> {
    let text = w.entries([LINES], LINES, |k| ([k], line(k)))?;
    let mut counts = w.dist_map::<String, u64, _>(Sum)?.named("counts");
    let mut mentions = w.dist_multi_map::<String, u32>()?.named("mentions");
    for _ in 0..3 {
        parallel_for!(w, unordered, buffer [counts, mentions];
        for ((number), words) in text {
            each(number);
            for word in words.split_whitespace() {
                counts.add(word, 1);
                mentions.add(word, number as u32);
            }
        })?;
    }
    let found = parallel_for!(w, unordered, read counts, sum found: f64;
    for ((number), words) in text {
        for word in words.split_whitespace() {
            found += counts.get(word).unwrap_or(0) as f64 / (number + 1) as f64;
        }
    })?;
    let local = text.local();
    let words =
        || local.lazy().flat_map(|[line], text| text.split_whitespace().map(move |word| (word.len(), line)));
    let groups = words().map(|_, line| line as u32).group_by(|len, _| [*len]).materialize(w)?;
    let groups = groups.to_vec(w)?.into_iter().map(|entry| entry.value).collect();
    let again = local
        .lazy()
        .flat_map(|[line], text| text.split_whitespace().map(move |word| (word.to_owned(), line as u32)))
        .group_by(|word, _| word.clone())
        .to_map(w, Append)?;
    let (counts, mentions, again) = (counts.to_vec(w)?, mentions.to_vec(w)?, again.to_vec(w)?);
    for ((word, lines), (same, once)) in mentions.iter().zip(&again) {
        assert!(word == same && *lines == once.repeat(3), "{word}");
    }
    assert_eq!(mentions.len(), again.len());
    Ok((counts, mentions, groups, found))
}

#[test]
fn processes_make_what_threads_make_on_any_number() {
    as_processes("processes_make_what_threads_make_on_any_number", None, |w| {
        let ours = program(w, |_| ()).unwrap();
        w.agree(&ours).unwrap();
        if w.rank() == 0 {
            for workers in [1, 2, 3, 5] {
                let theirs = hectare::run(workers, |w| program(w, |_| ())).unwrap();
                assert!(theirs.iter().all(|theirs| *theirs == ours), "{workers} workers");
            }
        }
    });
}

#[test]
fn a_worker_killed_while_it_contributes_is_named() {
    as_processes("a_worker_killed_while_it_contributes_is_named", Some(2), |w| {
        let me = w.rank();
        let failed = program(w, |number| {
            if me == 2 && number > LINES / 2 {
                // SAFETY: ends this process, as the kernel would when memory runs out.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
        })
        .unwrap_err();
        assert!(matches!(failed, Error::WorkerLost { rank: 2, .. }), "{failed}");
    });
}
