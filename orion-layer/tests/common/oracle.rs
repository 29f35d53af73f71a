//! Random nests of all kinds, each run by its own program and replayed.
use super::case::Case;
use super::check::check;
use super::random::Random;
use super::running::{Options, run_case};
use super::{generate, irregular, neighbours};
use hectare_orion::schedule::{Candidate, Schedule, Verdict, Wavefront};
use hectare_orion::{Error, Explanation, run};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// How often each way to run was taken.
pub type Tally = BTreeMap<String, usize>;

/// The case of a seed: of two in four any loops, then neighbours, then subscripts from data.
pub fn case_of(seed: u64) -> Case {
    match seed % 4 {
        2 => neighbours::case(seed),
        3 => irregular::case(seed),
        _ => generate::case(seed),
    }
}

/// Any wavefront.
pub fn any_wavefront(random: &mut Random) -> Wavefront {
    Wavefront {
        outer: random.below(3),
        inner: random.below(3),
        by_index: random.below(3) > 0,
        ahead: random.below(4),
        blocks: 1 + random.below(6),
    }
}

/// Runs the nests of a seed on some number of workers, and compares what ran with what must hold of it and what is left with what a
/// replay leaves; in an ordered loop, that is the serial program. An error says what is wrong.
pub fn run_nests(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut random = Random(seed ^ 0x0ac1e);
    let case = case_of(seed);
    let workers = 1 + random.below(4);
    let forced = any_wavefront(&mut random);
    let is_forced = random.percent([10, 10, 40, 0][(seed % 4) as usize]);
    let schedule: Option<&(dyn Schedule + Sync)> = if is_forced { Some(&forced) } else { None };
    let options = Options { schedule, slow: random.percent(30) };
    let clock = AtomicU64::new(0);
    let place = || match is_forced {
        true => format!("{workers} workers, {forced:?}\n{case}"),
        false => format!("{workers} workers\n{case}"),
    };
    let results = run(workers, |w| {
        let passes = run_case(w, &case, &clock, options);
        let ways: Vec<String> = w.explain().iter().map(way).collect();
        Ok((passes, ways))
    });
    let (passes, ways): (Vec<_>, Vec<_>) =
        results.map_err(|error| format!("{error}: {}", place()))?.into_iter().unzip();
    if ways.iter().any(|other| *other != ways[0]) {
        return Err(format!("the workers have made different plans: {ways:?}: {}", place()));
    }
    let refused = |result: &Result<_, Error>| matches!(result, Err(Error::InvalidSchedule { .. }));
    if is_forced && passes.iter().all(refused) {
        *tally.entry("a wavefront of any numbers, refused".into()).or_default() += 1;
        return Ok(());
    }
    let passes: Vec<_> =
        passes.into_iter().collect::<Result<_, _>>().map_err(|error| format!("{error}: {}", place()))?;
    check(&case, &passes).map_err(|what| format!("{what}: {}", place()))?;
    for way in &ways[0] {
        let way = if is_forced { "a wavefront of any numbers" } else { way };
        *tally.entry(way.to_owned()).or_default() += 1;
    }
    Ok(())
}

/// How a loop runs, up to the names of its variables.
pub fn way(explanation: &Explanation) -> String {
    let dims = explanation.dims.len();
    if let Some(kind) = explanation.inspected.as_ref().and_then(|found| found.kind) {
        let kind = kind.to_string();
        let kind = kind.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        return format!("inspected: {}", kind.split(" of ").next().unwrap_or_default());
    }
    let is_chosen = |candidate: &&Candidate| matches!(candidate.verdict, Verdict::Chosen(_));
    // On several hosts, what one would do there, if a worker does that.
    let is_in_turn = |one: &&Candidate| matches!(&one.verdict, Verdict::Refused(why) if why.contains("for the same results"));
    let mut candidates = explanation.candidates.iter();
    let name = candidates.clone().find(is_in_turn).or_else(|| candidates.find(is_chosen));
    let name = name.map_or("", |one| &one.name);
    let kind = name.split([',', ':']).next().unwrap_or_default();
    let in_place = if name.contains("in place") { ", arrays in place" } else { "" };
    match kind {
        "wavefront" => format!("wavefront of {dims} dimensions"),
        _ if name.contains(" and ") => format!("{kind} of three{in_place}"),
        _ => format!("{kind}{in_place}"),
    }
}
