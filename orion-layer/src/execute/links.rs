//! Latency and rate of the links between a program's hosts, which its workers measure once, before the first loop is planned.
use crate::context::{Context, Outcome};
use crate::error::Result;
use crate::fabric::{attach_to, shown};
use crate::site::Site;
use hectare_dependence::hosts::{Hosts, Link};
use hectare_dsm::{AreaSpec, Owned, Rank};
use std::time::{Duration, Instant};

/// Turns that are not counted, and those that are.
const WARM: usize = 3;
const TURNS: usize = 9;
/// Bytes that each host sends to all others, one after the other; fewer where there are many hosts.
const LENGTHS: [usize; 5] = [1 << 16, 1 << 18, 1 << 20, 1 << 20, 1 << 20];
/// Bytes that come to a host in one turn, at most.
const MOST: usize = 16 << 20;
/// Sending ends after this time.
const LONGEST: Duration = Duration::from_millis(100);

/// The figures, as worker 0 measured them.
#[derive(Debug)]
struct Measured(Link);

impl Context<'_> {
    /// The hosts of the program and the links between them, if there are several hosts; the same on all workers. Collective.
    pub(super) fn linked_hosts(&mut self, site: Site) -> Result<Option<Hosts>> {
        if !self.fabric.spans_hosts() {
            return Ok(None);
        }
        let link = match self.extensions.get::<Measured>() {
            Some(Measured(link)) => *link,
            None => {
                let link = self.measure_links(site)?;
                self.extensions.put(Measured(link));
                link
            }
        };
        let of = (0..self.size()).map(|rank| self.fabric.host_of(rank)).collect();
        Ok(Some(Hosts::new(of, link)))
    }

    fn measure_links(&mut self, site: Site) -> Result<Link> {
        let barrier = self.measure_barriers(site)?;
        let bytes_per_ns = self.measure_bytes(site, barrier)?;
        let hand_over = self.measure_hand_overs(site)?;
        let mut link = None;
        let mine = [barrier.as_nanos() as f64, hand_over.as_nanos() as f64, bytes_per_ns];
        self.exchange_values(site, &mine, |rank, figures: [f64; 3]| {
            let [barrier_ns, hand_over_ns, bytes_per_ns] = figures;
            link = link.or((rank == 0).then_some(Link { barrier_ns, hand_over_ns, bytes_per_ns }));
            Ok(())
        })?;
        let link = link.unwrap_or(Link::of_network(0.0, bytes_per_ns));
        tracing::debug!(?link, "links between hosts measured");
        Ok(link)
    }

    /// The first worker of each host.
    fn leaders(&self) -> Vec<Rank> {
        let mut hosts: Vec<usize> = (0..self.size()).map(|rank| self.fabric.host_of(rank)).collect();
        hosts.dedup();
        hosts
            .into_iter()
            .filter_map(|host| (0..self.size()).find(|rank| self.fabric.host_of(*rank) == host))
            .map(|rank| rank as Rank)
            .collect()
    }

    fn measure_barriers(&mut self, site: Site) -> Result<Duration> {
        let mut times = Vec::new();
        for _ in 0..WARM + TURNS {
            let since = Instant::now();
            self.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))?;
            times.push(since.elapsed());
        }
        Ok(median(times.split_off(WARM)))
    }

    /// Bytes per nanosecond that a host sends to all others together, while all do.
    fn measure_bytes(&mut self, site: Site, barrier: Duration) -> Result<f64> {
        let leaders = self.leaders();
        let name = |rank: Rank| format!("orion/links/{rank}");
        let lengths = LENGTHS.map(|len| len.min(MOST / leaders.len()).max(64));
        let longest = lengths.into_iter().max().unwrap_or_default();
        let me = self.rank();
        let leads = leaders.contains(&me);
        let made = match leads {
            true => {
                self.fabric.worker.create::<u8>(AreaSpec::new(name(self.rank())).copies(1), longest).map(Some)
            }
            false => Ok(None),
        };
        let mut mine = self.agree_on(site, made.map_err(Into::into))?;
        let (timeout, place) = (self.timeout, site.to_string());
        let others = leaders.iter().filter(|rank| leads && **rank != me);
        let seen: Result<Vec<_>> = others
            .map(|rank| attach_to::<u8>(self.fabric.worker, &place, &name(*rank), *rank as usize, timeout))
            .collect();
        let seen = self.agree_on(site, seen)?;
        // At first an area goes whole to who has not had it.
        let touched = mine.as_mut().map_or(Ok(()), |mine| {
            mine.write(self.fabric.worker).map(|mut area| area.range_mut(0..64).fill(1))
        });
        self.agree_on(site, touched.map_err(Into::into))?;
        let (begun, mut rate) = (Instant::now(), 1.0);
        for (turn, len) in lengths.into_iter().enumerate() {
            let written = match &mut mine {
                Some(mine) => {
                    mine.write(self.fabric.worker).map(|mut area| area.range_mut(0..len).fill(turn as u8 + 2))
                }
                None => Ok(()),
            };
            // The exchange has a barrier, by which what was written is everywhere.
            let since = Instant::now();
            self.agree_on(site, written.map_err(Into::into))?;
            let took = since.elapsed().saturating_sub(barrier).max(Duration::from_nanos(1));
            rate = (len * (leaders.len() - 1)) as f64 / took.as_nanos() as f64;
            // Worker 0's clock decides for all.
            let mut goes_on = true;
            self.exchange_values(site, &(begun.elapsed() < LONGEST), |rank, its: bool| {
                goes_on = if rank == 0 { its } else { goes_on };
                Ok(())
            })?;
            if !goes_on {
                break;
            }
        }
        drop(seen);
        let deleted = mine.map_or(Ok(()), |mine| mine.delete(self.fabric.worker));
        self.agree_on(site, deleted.map_err(Into::into))?;
        Ok(rate)
    }

    /// A hand-over of a small part from each host to the next.
    fn measure_hand_overs(&mut self, site: Site) -> Result<Duration> {
        let leaders = self.leaders();
        let name = |at: usize| format!("orion/links/hand/{at}");
        let own = leaders.iter().position(|rank| *rank == self.rank());
        let made = match own {
            Some(at) => self.fabric.worker.create::<u8>(shown::spec(name(at), true), 64).map(Some),
            None => Ok(None),
        };
        let mut mine = self.agree_on(site, made.map_err(Into::into))?;
        let (timeout, place) = (self.timeout, site.to_string());
        let areas: Result<Vec<_>> = (0..own.map_or(0, |_| leaders.len()))
            .map(|at| attach_to::<u8>(self.fabric.worker, &place, &name(at), leaders[at] as usize, timeout))
            .collect();
        let areas = self.agree_on(site, areas)?;
        let mut times = Vec::new();
        for turn in 0..WARM + TURNS {
            let since = Instant::now();
            let handed = match (own, mine.take()) {
                (Some(at), Some(held)) => {
                    let next = leaders[(at + 1) % leaders.len()];
                    // That of the host before this one, which has had it for `turn` turns less.
                    let comes = &areas[(at + leaders.len() * (turn + 1) - turn - 1) % leaders.len()];
                    self.hand_over(held, next, |worker| comes.take_within(worker, timeout)).map(Some)
                }
                _ => Ok(None),
            };
            times.push(since.elapsed());
            mine = self.agree_on(site, handed)?;
        }
        drop(areas);
        let deleted = mine.map_or(Ok(()), |mine| mine.delete(self.fabric.worker));
        self.agree_on(site, deleted.map_err(Into::into))?;
        Ok(median(times.split_off(WARM)))
    }

    /// Gives an area away, and takes another.
    fn hand_over(
        &mut self,
        mut held: Owned<u8>,
        next: Rank,
        take: impl FnOnce(&mut hectare_dsm::Worker) -> hectare_dsm::Result<Owned<u8>>,
    ) -> Result<Owned<u8>> {
        let worker = &mut *self.fabric.worker;
        let mut bytes = held.write(worker)?;
        bytes.range_mut(0..64).iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        held.give(worker, next).map_err(hectare_dsm::Error::from)?;
        Ok(take(worker)?)
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
