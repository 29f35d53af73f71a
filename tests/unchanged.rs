//! Lines that were written and are as they were do not go to another host.
use crate::common::*;
use hectare::agent::{Agent, RemoteWorker};
use hectare::{AreaSpec, Job, Owned, Version, Worker};
use std::ops::Range;

const LINES: u64 = 1000;
/// Elements of a line.
const OF_LINE: usize = 8;

struct Host {
    agent: Agent,
    worker: Worker,
}

impl Host {
    /// Host 0 of two, with a worker each.
    fn new() -> (Host, Owned<u64>) {
        let job = Job::builder().round_timeout(LONG).hosts(&[1, 1], 0).embedded().unwrap();
        let agent = job.agent().unwrap();
        agent.set_worker(1, RemoteWorker::There).unwrap();
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u64>(AreaSpec::new("a").copies(4), LINES as usize * OF_LINE).unwrap();
        owned.write_whole(&worker).unwrap().fill(1);
        worker.sync().unwrap();
        (Host { agent, worker }, owned)
    }

    /// Writes the area all over, with `change` alone changed.
    fn change(&self, owned: &mut Owned<u64>, change: impl Fn(&mut [u64])) {
        let before = owned.read(&self.worker).unwrap().to_vec();
        let all = owned.write_whole(&self.worker).unwrap();
        all.copy_from_slice(&before);
        change(all);
    }

    /// A version to count from: the log is divided after it.
    fn base(&mut self, owned: &mut Owned<u64>) -> Version {
        let area = self.agent.find("a").unwrap();
        self.agent.hold(&[area]).unwrap()[0].seal();
        self.change(owned, |all| all[0] += 1);
        self.worker.sync().unwrap();
        self.agent.newest(area).unwrap()
    }

    /// Gives the area to the other host, and which lines are said to have changed.
    fn give(&mut self, owned: Owned<u64>, base: Version) -> Vec<Range<u64>> {
        let area = self.agent.find("a").unwrap();
        let expected = owned.read(&self.worker).unwrap().to_vec();
        owned.give(&self.worker, 1).unwrap();
        self.worker.sync().unwrap();
        let held = self.agent.hold(&[area]).unwrap().remove(0);
        assert!(held.version() > base);
        let bytes: Vec<u8> = expected.iter().flat_map(|element| element.to_ne_bytes()).collect();
        assert_eq!(held.bytes(), bytes);
        held.changed_since(Some(base)).runs().collect()
    }
}

#[test]
fn lines_that_were_written_and_are_as_they_were_do_not_count_as_changed() {
    let (mut host, mut owned) = Host::new();
    let base = host.base(&mut owned);
    host.change(&mut owned, |all| {
        (all[3 * OF_LINE + 1], all[4 * OF_LINE + 7], all[999 * OF_LINE]) = (2, 2, 2);
    });
    assert_eq!(host.give(owned, base), [3..5, 999..1000]);
}

#[test]
fn all_may_be_as_it_was() {
    let (mut host, mut owned) = Host::new();
    let base = host.base(&mut owned);
    host.change(&mut owned, |_| {});
    assert_eq!(host.give(owned, base), []);
}

/// Whoever has the version before both, and was sent a part of the first, needs that line.
#[test]
fn a_line_that_was_changed_and_changed_back_counts() {
    let (mut host, mut owned) = Host::new();
    let base = host.base(&mut owned);
    host.change(&mut owned, |all| all[7 * OF_LINE] = 2);
    host.worker.sync().unwrap();
    host.change(&mut owned, |all| all[7 * OF_LINE] = 1);
    let lines = host.give(owned, base);
    assert!(lines.iter().any(|run| run.contains(&7)), "{lines:?}");
}

/// To look at all lines costs more than to send a few that are as they were.
#[test]
fn where_hardly_any_line_is_as_it_was_all_count() {
    let (mut host, mut owned) = Host::new();
    let base = host.base(&mut owned);
    host.change(&mut owned, |all| all[20 * OF_LINE..].fill(2));
    let lines = host.give(owned, base);
    assert!(matches!(lines[..], [Range { start: 0, end: LINES }]), "{lines:?}");
}
