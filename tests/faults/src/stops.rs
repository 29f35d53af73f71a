//! Faults 5 to 7: processes that stand still.
use crate::host::{WATCHDOG, until};
use crate::load::Load;
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, TIME_LIMIT, Verdict};
use crate::system;
use anyhow::{Result, ensure};
use hectare_dsm::WorkerState;
use hectare_wire::{JobSettings, Request, Stall};
use std::time::{Duration, Instant};

/// Whether the job names every worker of a process as one that rounds do not wait for.
fn named(stage: &Stage, pid: u32) -> Result<bool> {
    let workers = stage.view.workers()?;
    let of_it: Vec<_> = workers.iter().filter(|info| info.pid == pid).collect();
    Ok(!of_it.is_empty() && of_it.iter().all(|info| info.state == WorkerState::Straggler))
}

/// The others go on while member `index` stands still for ten time-outs; it is named, and goes on after it.
/// False if it stood still inside a round, which the policy `wait` lets wait for it.
fn passed_over(stage: &mut Stage, index: usize, stop: impl FnOnce(&mut Stage) -> Result<()>) -> Result<bool> {
    let (before, deaths) = (stage.stats()?, stage.deaths()?);
    let pid = stage.load.members[index].pid();
    let since = Instant::now();
    stop(stage)?;
    let mut passed = false;
    while since.elapsed() < 9 * TIME_LIMIT {
        std::thread::sleep(TIME_LIMIT / 4);
        let late = stage.stats()?.late > before.late;
        if late && named(stage, pid)? {
            passed = true;
            stage.load.all_go_on(Instant::now(), &[index])?;
        }
    }
    ensure!(stage.deaths()? == deaths, Violation::new(Promise::E, "a standstill was taken for a death"));
    Ok(passed)
}

/// 5: SIGSTOP for ten time-outs, then SIGCONT, in a job whose rounds wait for those who are inside.
pub(crate) fn long(stage: &mut Stage) -> Result<Verdict> {
    let (times, mut passed) = (stage.times(1, 4), 0);
    for _ in 0..times {
        let index = stage.any();
        let pid = stage.load.members[index].pid();
        let held = passed_over(stage, index, |_| Ok(system::signal(pid, libc::SIGSTOP)?));
        let since = Instant::now();
        system::signal(pid, libc::SIGCONT)?;
        passed += usize::from(held?);
        stage.load.all_go_on(since, &[])?;
    }
    let killed = under_policy(stage, Stall::KillAfterMs(TIME_LIMIT.as_millis() as u64))?;
    let pinned = under_policy(stage, Stall::PinAfterMs(TIME_LIMIT.as_millis() as u64))?;
    Ok(Verdict::Held(format!(
        "wait: {passed} of {times} passed over, the others waited for; kill: {killed}; pin: {pinned}"
    )))
}

/// The same in a job with another policy: whatever the moment, the others go on, and who stood still is back
/// or dead.
fn under_policy(stage: &mut Stage, stall: Stall) -> Result<String> {
    const STALLED: &str = "stalled";
    let settings = JobSettings { stall: Some(stall), ..crate::stage::settings() };
    stage.host.connect()?.order(&Request::Create { job: STALLED.into(), settings, keep: true })?;
    let mut load = Load::start(&stage.host, STALLED)?;
    let view = stage.host.open(STALLED)?;
    let times = stage.times(2, 10);
    let (mut killed, mut waited, mut slowest) = (0u64, 0, Duration::ZERO);
    for _ in 0..times {
        let index = stage.random.below(load.members.len());
        let pid = load.members[index].pid();
        std::thread::sleep(Duration::from_micros(stage.random.below(3000) as u64));
        system::signal(pid, libc::SIGSTOP)?;
        // They may go on a little before it really stands still.
        std::thread::sleep(TIME_LIMIT / 4);
        let since = Instant::now();
        // `pin` has a way around who stands still in a round, but for the microseconds in which the actor is at
        // work and for areas of one copy or two; an actor with a claim takes two time-outs.
        let pins = matches!(stall, Stall::PinAfterMs(_));
        let limit = if pins { 3 * TIME_LIMIT } else { WATCHDOG };
        let went_on = load.go_on_within(limit, since, &[index]);
        system::signal(pid, libc::SIGCONT)?;
        let (mut late, took) = went_on?;
        std::thread::sleep(TIME_LIMIT / 4);
        // Who was sent the signal may take its time to die. On a busy machine that may be somebody else, who lost its
        // core inside a round for as long as the policy allows.
        let mut dead = Vec::new();
        let all_seen = || {
            dead = load.dead();
            view.stats().is_ok_and(|stats| stats.kills <= killed + dead.len() as u64)
        };
        until("who was killed to die", all_seen)?;
        late.retain(|area| !dead.iter().any(|index| load.members[*index].areas.contains(area)));
        waited += u32::from(!late.is_empty());
        // Who stands outside of a round holds it up for the job's round timeout, who stands inside for the policy's
        // time-out, which is as long here; never for both. As much again for a busy machine.
        let alone = dead.iter().all(|dead| *dead == index);
        let in_time = late.is_empty() && (stage.short || !alone || took < 2 * TIME_LIMIT);
        ensure!(
            pins || in_time,
            Violation::new(Promise::D, format!("areas {late:?} of a {stall:?} job went on after {took:?}"))
        );
        if late.is_empty() && alone {
            slowest = slowest.max(took);
        }
        killed += dead.len() as u64;
        for index in dead {
            load.replace(&stage.host, index)?;
        }
        load.all_go_on(Instant::now(), &[])?;
    }
    let stats = view.stats()?;
    ensure!(
        stats.kills == killed,
        Violation::new(Promise::G, format!("{killed} were killed, {} counted", stats.kills))
    );
    load.stop()?;
    drop(view);
    stage.host.connect()?.order(&Request::Remove { job: STALLED.into(), force: false })?;
    let pinned = stats.pinned_copies;
    stage.slowest = stage.slowest.max(slowest);
    Ok(format!(
        "{times} standstills, {killed} killed, {pinned} copies pinned, {waited} waited for, {slowest:.0?} at most"
    ))
}

/// 6: SIGSTOP below the time-out.
pub(crate) fn brief(stage: &mut Stage) -> Result<Verdict> {
    let (before, deaths) = (stage.stats()?, stage.deaths()?);
    let times = stage.times(2, 20);
    for _ in 0..times {
        let index = stage.any();
        let pid = stage.load.members[index].pid();
        system::signal(pid, libc::SIGSTOP)?;
        std::thread::sleep(TIME_LIMIT / 4);
        let since = Instant::now();
        system::signal(pid, libc::SIGCONT)?;
        stage.load.all_go_on(since, &[])?;
    }
    let now = stage.stats()?;
    ensure!(
        stage.deaths()? == deaths && now.kills == before.kills,
        "a short standstill was taken for a death"
    );
    let late = now.late - before.late;
    // A busy machine may hold somebody up for longer than the time-out.
    ensure!(stage.short || late == 0, Violation::new(Promise::D, format!("{late} were called late")));
    Ok(Verdict::Held(format!("{times} standstills, nobody late")))
}

/// 7: a worker that never calls `service`.
pub(crate) fn deaf(stage: &mut Stage) -> Result<Verdict> {
    // A process of one worker: the order is for one.
    let index = stage.random.below(2);
    let ms = 10 * TIME_LIMIT.as_millis();
    let mut passed = false;
    // A busy machine may hold the others up for as long.
    for _ in 0..if stage.short { 20 } else { 1 } {
        passed = passed_over(stage, index, |stage| stage.load.members[index].order(&format!("idle {ms}")))?;
        stage.load.all_go_on(Instant::now(), &[])?;
        if passed {
            break;
        }
    }
    ensure!(passed, Violation::new(Promise::G, "who stood still outside of rounds was not named as late"));
    Ok(Verdict::Held("named as late, passed over, and back".into()))
}
