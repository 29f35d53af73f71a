//! Random plans over several hosts: whatever comes late, a batch finds its rows as all batches before it left them.
use super::tests::{made, random, without_races};
use super::*;
use crate::protocol::tasks::crossing::{Crossing, Piece, Places, Position};
use proptest::prelude::*;
use std::collections::VecDeque;

const PASSES: usize = 3;
/// The content of a copy to which nothing has come.
const NOTHING: u64 = u64::MAX;

/// Rows that are sent, and how many batches their sender has done.
type Message = (Vec<(usize, usize, u64)>, u64);

struct World<'a> {
    plan: &'a RowPlan,
    places: &'a Places,
    crossing: Crossing,
    /// By host, array and row: which batch wrote it, counted over all from 1.
    copies: Vec<Vec<Vec<u64>>>,
    /// By worker and host.
    streams: Vec<Vec<VecDeque<Message>>>,
    unsaid: Vec<Vec<Vec<(usize, usize, u64)>>>,
    /// By host and worker: how many batches of that one are done, as far as the host knows; none before it has begun.
    known: Vec<Vec<Option<u64>>>,
    done: Vec<u64>,
}

impl World<'_> {
    fn values(&self, host: usize, pieces: impl IntoIterator<Item = Piece>) -> Vec<(usize, usize, u64)> {
        let rows = |piece: Piece| (piece.first..piece.first + piece.count).map(move |row| (piece.array, row));
        let at = |(array, row): (u32, u32)| {
            (array as usize, row as usize, self.copies[host][array as usize][row as usize])
        };
        pieces.into_iter().flat_map(rows).map(at).collect()
    }

    fn begin(&mut self) {
        for worker in 0..self.plan.workers() {
            for host in 0..self.places.hosts {
                let here = self.places.host_of[worker];
                if host == here {
                    self.known[host][worker] = Some(0);
                } else {
                    let initial = &self.crossing.route(worker as Rank, host).initial;
                    let message = (self.values(here, initial.iter().copied()), 0);
                    self.streams[worker][host].push_back(message);
                }
            }
        }
    }

    fn is_ready(&self, worker: usize) -> bool {
        let (at, known) = (self.done[worker] as usize, &self.known[self.places.host_of[worker]]);
        let batches = self.plan.batches();
        at < PASSES * batches
            && known.iter().all(Option::is_some)
            && self
                .plan
                .waits(worker as Rank, at / batches, at % batches)
                .all(|(other, count)| known[other as usize] >= Some(count))
    }

    /// Rows of each array that the batch touches, and those that it writes.
    fn rows(&self, worker: usize, array: usize, batch: usize) -> (Vec<u32>, Vec<u32>) {
        let (reads, writes) =
            (self.plan.reads(worker as Rank, array, batch), self.plan.writes(worker as Rank, array, batch));
        ([reads, writes].concat(), writes.to_vec())
    }

    /// Runs the next batch of a worker; `serial` says which batch wrote each row last before it.
    fn run(&mut self, worker: usize, serial: &[Vec<Vec<u64>>]) {
        let (host, batches) = (self.places.host_of[worker], self.plan.batches());
        let at = self.done[worker] as usize;
        let (pass, batch) = (at / batches, at % batches);
        for (array, before) in serial[at].iter().enumerate() {
            let (touched, written) = self.rows(worker, array, batch);
            for row in touched {
                let row = row as usize;
                assert_eq!(
                    self.copies[host][array][row], before[row],
                    "worker {worker}, batch {at}, row {row}"
                );
            }
            for row in written {
                self.copies[host][array][row as usize] = at as u64 + 1;
            }
        }
        self.done[worker] += 1;
        self.known[host][worker] = Some(self.done[worker]);
        for to in (0..self.places.hosts).filter(|to| *to != host) {
            let route = self.crossing.route(worker as Rank, to);
            let sent = self.values(host, route.after(batch, pass + 1 == PASSES));
            let is_told = route.tells(batch) || at + 1 == PASSES * batches;
            self.unsaid[worker][to].extend(sent);
            if is_told {
                let message = (std::mem::take(&mut self.unsaid[worker][to]), self.done[worker]);
                self.streams[worker][to].push_back(message);
            }
        }
    }

    fn take_in(&mut self, worker: usize, host: usize) {
        let Some((rows, done)) = self.streams[worker][host].pop_front() else { return };
        for (array, row, value) in rows {
            assert_ne!(value, NOTHING);
            self.copies[host][array][row] = value;
        }
        self.known[host][worker] = Some(done);
    }
}

/// By batch of all passes, the last place for the end: which batch wrote each row last before it.
fn serial(plan: &RowPlan) -> Vec<Vec<Vec<u64>>> {
    let mut rows: Vec<Vec<u64>> = plan.arrays().iter().map(|rows| vec![0; *rows]).collect();
    let mut all = Vec::new();
    for at in 0..PASSES * plan.batches() {
        all.push(rows.clone());
        for worker in 0..plan.workers() {
            for (array, rows) in rows.iter_mut().enumerate() {
                for row in plan.writes(worker as Rank, array, at % plan.batches()) {
                    rows[*row as usize] = at as u64 + 1;
                }
            }
        }
    }
    all.push(rows);
    all
}

fn check(plan: &RowPlan, places: &Places, crossing: Crossing, choices: &[u8]) {
    let serial = serial(plan);
    let (workers, hosts) = (plan.workers(), places.hosts);
    let copy = |host: usize| {
        let array = |(array, rows): (usize, &usize)| {
            vec![if places.homes[array] == host { 0 } else { NOTHING }; *rows]
        };
        plan.arrays().iter().enumerate().map(array).collect()
    };
    let mut world = World {
        plan,
        places,
        crossing,
        copies: (0..hosts).map(copy).collect(),
        streams: vec![vec![VecDeque::new(); hosts]; workers],
        unsaid: vec![vec![Vec::new(); hosts]; workers],
        known: vec![vec![None; workers]; hosts],
        done: vec![0; workers],
    };
    world.begin();
    let mut choices = choices.iter().cycle();
    loop {
        let ready = (0..workers).filter(|worker| world.is_ready(*worker)).map(|worker| (worker, None));
        let streams = (0..workers).flat_map(|worker| (0..hosts).map(move |host| (worker, host)));
        let came = streams.filter(|(worker, host)| !world.streams[*worker][*host].is_empty());
        let all: Vec<_> = ready.chain(came.map(|(worker, host)| (worker, Some(host)))).collect();
        if all.is_empty() {
            break;
        }
        match all[usize::from(*choices.next().unwrap()) % all.len()] {
            (worker, None) => world.run(worker, &serial),
            (worker, Some(host)) => world.take_in(worker, host),
        }
    }
    assert_eq!(world.done, vec![(PASSES * plan.batches()) as u64; workers], "nobody is ready");
    for worker in 0..workers {
        for host in 0..hosts {
            let home = world.crossing.route(worker as Rank, host).home.clone();
            let message = (world.values(places.host_of[worker], home), 0);
            world.streams[worker][host].push_back(message);
            world.take_in(worker, host);
        }
    }
    for (array, rows) in plan.arrays().iter().enumerate() {
        for row in 0..*rows {
            let home = places.homes[array];
            assert_eq!(
                world.copies[home][array][row],
                serial.last().unwrap()[array][row],
                "row {row} at home"
            );
        }
    }
}

/// Hosts of the workers, and of arrays: each is one that has a worker.
fn placed(host_of: &[u8], homes: &[u8], workers: usize, arrays: usize) -> Places {
    let host_of: Vec<usize> = host_of[..workers].iter().map(|host| usize::from(*host)).collect();
    let homes = homes[..arrays].iter().map(|worker| host_of[usize::from(*worker) % workers]).collect();
    Places { hosts: 3, host_of, homes }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn whatever_comes_late_a_batch_finds_its_rows(
        (arrays, batches, lists) in random().prop_map(without_races),
        host_of in prop::collection::vec(0u8..3, 8),
        homes in prop::collection::vec(0u8..8, 4),
        choices in prop::collection::vec(any::<u8>(), 64),
    ) {
        let plan = made(&lists, arrays, batches).unwrap();
        let places = placed(&host_of, &homes, plan.workers(), arrays);
        check(&plan, &places, plan.crossing(&places).unwrap(), &choices);
    }

    #[test]
    fn a_position_goes_through_all_that_is_sent(
        (arrays, batches, lists) in random().prop_map(without_races),
        host_of in prop::collection::vec(0u8..3, 8),
        homes in prop::collection::vec(0u8..8, 4),
        most in 1usize..40,
    ) {
        let plan = made(&lists, arrays, batches).unwrap();
        let places = placed(&host_of, &homes, plan.workers(), arrays);
        let crossing = plan.crossing(&places).unwrap();
        let unit_bytes = vec![24; arrays];
        let mut counted = vec![vec![0; 3]; 3];
        for (worker, host) in (0..plan.workers()).flat_map(|worker| (0..3).map(move |host| (worker, host))) {
            let route = crossing.route(worker as Rank, host);
            let sent = (0..PASSES).flat_map(|pass| (0..batches).map(move |batch| (pass, batch)));
            let sent = sent.flat_map(|(pass, batch)| route.after(batch, pass + 1 == PASSES));
            let all = route.initial.iter().copied().chain(sent).chain(route.home.iter().copied());
            let bytes = all.flat_map(|piece| {
                let start = piece.first as usize * 24;
                (start..start + piece.count as usize * 24).map(move |byte| (piece.array as usize, byte))
            });
            let (mut position, mut found) = (Position::default(), Vec::new());
            while let Some(stretch) = position.next(route, PASSES, &unit_bytes, most) {
                prop_assert!(stretch.bytes <= most);
                found.extend((stretch.start..stretch.start + stretch.bytes).map(|byte| (stretch.array, byte)));
                prop_assert_eq!(position.bytes, found.len() as u64);
            }
            counted[places.host_of[worker]][host] += found.len() as u64;
            prop_assert_eq!(found, bytes.collect::<Vec<_>>());
        }
        prop_assert_eq!(counted, crossing.bytes(&places.host_of, PASSES, &unit_bytes));
    }
}
