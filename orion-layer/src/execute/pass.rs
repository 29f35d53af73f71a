//! One pass of a loop on one worker.
use super::any_loop::AnyLoop;
use super::body::guarded;
use super::cells::Cells;
use super::clocks::Clocks;
use super::plan::LoopPlan;
use super::prefetch_plan::take_tallies;
use super::timing::timed;
use super::work::{Progress, relaxed, serves};
use super::{AnyArrays, LoopArray, LoopHead};
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::relax::{Consistency, LoopReport, PassParams, Treatment};
use hectare_dsm::Rank;
use std::time::{Duration, Instant};

/// How a pass begins on a worker.
pub(super) struct Begun {
    /// By array: whether parts go ahead in this pass.
    ahead: Vec<bool>,
    /// Whether the arrays lie open to tasks already, and no worker has met the others.
    is_open: bool,
    /// Whether this worker has brought its arrays to where they are needed. An error is of this worker alone, who has to tell the
    /// others.
    pub(super) handed: Result<()>,
}

impl Begun {
    fn without_parts(arrays: usize, is_open: bool) -> Begun {
        Begun { ahead: vec![false; arrays], is_open, handed: Ok(()) }
    }
}

/// Whether workers end clocks in a pass. Collected arrays are merged after it.
fn has_clocks(plan: &LoopPlan, arrays: &mut dyn AnyArrays) -> bool {
    relaxed(plan, arrays).iter().any(|array| array.treatment() != Treatment::Collected)
}

impl Context<'_> {
    pub(super) fn pass(&mut self, running: &mut dyn AnyLoop<'_>, plan: &LoopPlan) -> Result<()> {
        let head = running.head();
        if let Some(free) = &plan.free {
            return self.pass_dynamic(running, plan, free);
        }
        let mut timing = plan.timing.borrow_mut();
        timed(&mut timing.placing, || {
            running.place(self, &plan.choice.cuts, &plan.owners, plan.is_sorted())
        })?;
        drop(timing);
        if plan.inspection.is_some() {
            let found = self.inspected(running, plan)?;
            let fingerprint = self.set_fingerprint(0);
            self.set_fingerprint(found.digest(fingerprint));
            if let Some(batched) = found.batched() {
                return self.pass_in_batches(running, plan, batched);
            }
        }
        let mut spent = LoopReport::default();
        let Begun { ahead, is_open, handed } = self.begin(head, plan, running.arrays())?;
        let since = Instant::now();
        let (clocks, handed) = match has_clocks(plan, running.arrays()) {
            true => {
                let planned = match serves(plan, running.arrays()) {
                    true => {
                        let every = head.relax.every;
                        self.plan_prefetch(running, plan, every, &mut spent)
                    }
                    false => Ok(()),
                };
                (Some(self.open(head, plan, running.arrays(), handed.and(planned))?), Ok(()))
            }
            false => (None, handed),
        };
        let run = match &plan.tasks {
            Some(tasks) if is_open => self.begin_open(plan, tasks, running.arrays())?.map(Some),
            Some(tasks) => self.open_and_begin(plan, tasks, running.arrays(), handed)?.map(Some),
            None => handed.map(|()| None),
        };
        running.begin_sums(plan.cells);
        let me = self.rank();
        let mut progress = Progress { begun: 0, ahead, clocks, spent };
        let meter = self.meter(plan);
        let worked = run.and_then(|run| {
            guarded(&plan.nest, me, || {
                let cells = Cells::new(&plan.choice, meter.as_ref());
                match run {
                    None => self.work(plan, &cells, running, &mut progress),
                    Some(run) => self.work_in_place(plan, &cells, run, running, &mut progress),
                }
            })
        });
        let Progress { begun, clocks, mut spent, .. } = progress;
        let waited = Instant::now();
        let in_place = plan.tasks.is_some();
        // Where each has copies of its own, nobody writes what another reads: the exchange after the pass is enough.
        let in_copies = self.works_in_copies(plan, running.arrays());
        if worked.is_ok() && clocks.is_some() && !in_copies {
            // Whoever is not here yet may still write. One who has failed says so here, and calls once, as this does.
            if let Err(error) = self.exchange(head.site, Outcome::Value(&[]), |_, _| Ok(())) {
                self.abandon(plan, running.arrays(), begun, &error.to_string());
                return Err(error);
            }
        }
        let took = since.elapsed();
        let ended = worked.and_then(|()| self.end(plan, running.arrays(), clocks.is_some()));
        if let Err(error) = ended {
            if clocks.is_some() || in_place || self.fabric.spans_hosts() {
                self.tell_failed();
            }
            self.abandon(plan, running.arrays(), begun, &error.to_string());
            return Err(self.fail(head.site, error));
        }
        let combined = self.combine(running, plan, [took, spent.compute]);
        if let (Err(error), true) = (&combined, in_copies) {
            // Another worker's part of what this one has is missing.
            self.abandon(plan, running.arrays(), begun, &error.to_string());
        }
        let longest = combined?;
        self.leave_open(plan, running.arrays());
        spent.wait += waited.elapsed();
        if clocks.is_some() {
            plan.trials.borrow_mut().note(longest);
        }
        take_tallies(plan, running.arrays(), &mut spent);
        plan.meter.replace(meter);
        plan.note(head.relax, &spent, clocks.map(|clocks| clocks.report));
        Ok(())
    }

    /// Adds up what the cells of all workers gave; how long the slowest worker took. `took` says how long this one did, and how much of it
    /// went into iterations. Collective.
    pub(super) fn combine(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        plan: &LoopPlan,
        took: [Duration; 2],
    ) -> Result<Duration> {
        let mut bytes = took.map(|time| (time.as_nanos() as u64).to_le_bytes()).concat();
        running.encode_sums(&mut bytes);
        let mut longest = 0;
        let mut computes = plan.computes.borrow_mut();
        computes.clear();
        self.exchange(running.head().site, Outcome::Value(&bytes), |_, bytes| {
            let cut_off = || Error::Message("decoded: a time is cut off".into());
            let (took, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
            let (compute, partials) = rest.split_first_chunk().ok_or_else(cut_off)?;
            longest = longest.max(u64::from_le_bytes(*took));
            computes.push(u64::from_le_bytes(*compute));
            running.add_sums(partials)
        })?;
        Ok(Duration::from_nanos(longest))
    }

    /// Brings every written array to the worker that needs it first.
    pub(super) fn begin(
        &mut self,
        head: &LoopHead<'_>,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
    ) -> Result<Begun> {
        for (number, array) in arrays.each().iter_mut().enumerate() {
            if let Some(layout) = plan.layout(number, array.layout()).or_else(|| {
                let by_rule = array.treatment().contributes();
                plan.one_piece(number, by_rule, array.layout())
            }) {
                match plan.has_ghosts(number) {
                    true => array.lie_as(self, head.site, &layout)?,
                    false => array.rearrange(self, head.site, &layout)?,
                }
            }
        }
        let fetched = match self.fabric.spans_hosts() {
            true => {
                self.prepare_edges(head, plan, arrays)?;
                self.publish_lent(head, plan, arrays)?;
                self.fetch_ghosts(plan, arrays)
            }
            false => Ok(()),
        };
        let in_copies = self.works_in_copies(plan, arrays);
        let mut each = arrays.each();
        if !each.iter().any(|array| array.is_written()) {
            return Ok(Begun::without_parts(each.len(), false));
        }
        if self.is_left_open(plan, &each) {
            return Ok(Begun::without_parts(each.len(), true));
        }
        let mut ahead = vec![false; each.len()];
        if self.fabric.spans_hosts() {
            // By which those who wait for parts learn of failures.
            self.clock_table(head.site)?.reset(self.fabric.worker)?;
        }
        if !in_copies {
            // Whoever is not here yet may still read what the last loop left.
            self.exchange(head.site, Outcome::Value(&[]), |_, _| Ok(()))?;
        }
        let were_lent = each.iter().any(|array| array.is_written() && array.rests_lent());
        let recalled = each.iter_mut().try_for_each(|array| array.recall(self.fabric.worker));
        match (fetched.and(recalled), self.fabric.spans_hosts()) {
            // Who reads what was lent there is of the same host.
            (Ok(()), true) if were_lent && self.size() > self.fabric.hosts() => {
                self.fabric.worker.sync()?;
            }
            // Nobody has to give back parts that were published.
            (Ok(()), true) => {}
            (recalled, spans_hosts) => {
                if spans_hosts {
                    // It alone says so: the others do not meet here, and may wait for its parts.
                    self.tell_failed();
                }
                self.agree_on(head.site, recalled)?;
            }
        }
        let recalled = each.iter_mut().try_for_each(|array| array.finish_recall(self.fabric.worker));
        let mut written = each.iter_mut().enumerate().filter(|(_, array)| array.is_written());
        let handed = recalled.and_then(|()| {
            written.try_for_each(|(number, array)| {
                match plan.free {
                    None => ahead[number] = self.hand_out(plan, number, *array)?,
                    Some(_) => self.lay_out(*array)?,
                }
                Ok(())
            })
        });
        Ok(Begun { ahead, is_open: false, handed })
    }

    /// Has arrays published that the loop writes while others may still read what was before.
    fn publish_lent(
        &mut self,
        head: &LoopHead<'_>,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
    ) -> Result<()> {
        for (number, array) in arrays.each().into_iter().enumerate().filter(|(_, array)| array.is_written()) {
            let is_read_before = match plan.has_ghosts(number) {
                true => plan.reads_of(number).is_none_or(|reads| !array.has_fresh_edges(reads)),
                false => array.treatment() != Treatment::Exact,
            };
            if is_read_before {
                array.publish_lent(self, head.site)?;
            }
        }
        Ok(())
    }

    /// Has arrays that the loop writes send other hosts only what loops read there; and tells those that it reads, if it does so again.
    fn prepare_edges(
        &mut self,
        head: &LoopHead<'_>,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
    ) -> Result<()> {
        let is_first = plan.timing.borrow().passes == 0;
        let host_of: Vec<usize> = (0..self.size()).map(|rank| self.fabric.host_of(rank)).collect();
        let each_alone: Vec<usize> = (0..self.size()).collect();
        let mut read_bytes = plan.read_bytes.borrow_mut();
        read_bytes.begin(plan.nest.arrays.len(), host_of.iter().max().map_or(0, |last| last + 1));
        for (number, array) in arrays.each().into_iter().enumerate() {
            if array.is_written() {
                array.meet_edges(self, head.site)?;
            }
            let Some(reads) = plan.reads_of(number) else { continue };
            if read_bytes.is_new(number, array.version()) {
                array.note_reads(reads, &host_of, &mut |from, to, bytes| {
                    read_bytes.add(from, to, bytes as f64)
                });
            }
            if !is_first {
                // Who writes an array with ghost regions has what others read of it elsewhere.
                let is_apart = plan.has_ghosts(number);
                array.expect_reads(reads, if is_apart { &each_alone } else { &host_of });
            }
        }
        Ok(())
    }

    /// Fetches what lies beyond this worker's parts of arrays that the loop writes. Where workers have met after that, others write.
    fn fetch_ghosts(&mut self, plan: &LoopPlan, arrays: &mut dyn AnyArrays) -> Result<()> {
        let all = arrays.each().into_iter().enumerate();
        all.filter(|(number, _)| plan.has_ghosts(*number)).try_for_each(|(number, array)| {
            plan.reads_of(number).map_or(Ok(()), |reads| array.fetch_ghosts(self.fabric.worker, reads))
        })
    }

    /// Whether all that the loop writes is relaxed, and lies in copies: on several hosts, where others read what is published. Then no
    /// worker changes before the end of a pass what another reads, and none has to wait for the others before it takes its arrays back.
    fn works_in_copies(&self, plan: &LoopPlan, arrays: &mut dyn AnyArrays) -> bool {
        let is_copied = |array: &dyn LoopArray| {
            !array.is_written() || matches!(array.treatment(), Treatment::Relaxed | Treatment::Buffered)
        };
        self.fabric.spans_hosts()
            && plan.free.is_none()
            && has_clocks(plan, arrays)
            && arrays.each().iter().all(|array| is_copied(&**array))
    }

    /// Opens what is relaxed to all, and sets the clocks.
    fn open(
        &mut self,
        head: &LoopHead<'_>,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
        planned: Result<()>,
    ) -> Result<Clocks> {
        let mut relaxed = relaxed(plan, arrays);
        let clock_table = self.clock_table(head.site)?;
        let spans_hosts = self.fabric.spans_hosts();
        let (me, workers) = (self.rank() as usize, self.size());
        // Nobody can write what lies on another host.
        let in_copies = spans_hosts
            || plan.trials.borrow().in_copies(head.relax.consistency, workers, plan.relaxed_bytes());
        let shares = relaxed.iter().any(|array| array.treatment() == Treatment::Relaxed);
        if shares && head.relax.consistency == Consistency::Async {
            plan.report(head.relax).note_sharing(in_copies);
        }
        let params = PassParams { relax: head.relax, in_copies, me, workers };
        let opened = relaxed.iter_mut().try_for_each(|array| array.open(self.fabric.worker));
        let opened = planned.and(opened).and_then(|()| clock_table.reset(self.fabric.worker));
        let made = opened.and_then(|()| {
            let mut all = relaxed.iter_mut();
            all.try_fold(false, |is_new, array| Ok(array.make_shared(self.fabric.worker, &params)? || is_new))
        });
        if !spans_hosts || !matches!(made, Ok(false)) {
            // Each reads what others have opened, and finds what they have made. On several hosts all read what was published when the last
            // loop ended.
            self.agree_on(head.site, made)?;
        }
        // The rules see the values of before the pass.
        let entered = guarded(&plan.nest, me as Rank, || {
            Clocks::enter(clock_table, params, self.timeout, self.fabric.worker, &mut relaxed)
        });
        self.agree_on(head.site, entered)
    }

    /// Gives what this worker owns at rest to whoever needs it first; whether parts go ahead in this pass.
    fn hand_out(&mut self, plan: &LoopPlan, number: usize, array: &mut dyn LoopArray) -> Result<bool> {
        let me = self.rank();
        let owners = array.layout().owners.clone();
        for (part, owner) in owners.iter().enumerate() {
            let first = plan.first(number, part, *owner);
            if *owner == me && first != me {
                array.give(self.fabric.worker, part, first)?;
            }
        }
        let goes_ahead = plan.goes_ahead(number, &owners);
        let at_end = |(part, owner): (usize, &Rank)| match goes_ahead {
            true => plan.rests(number, part, *owner),
            false => plan.last(number, part, *owner),
        };
        array.set_owners(&owners.iter().enumerate().map(at_end).collect::<Vec<_>>());
        Ok(goes_ahead)
    }

    /// After an error: whoever waits for a part of this worker's learns that it will not come. That goes also for
    /// parts that others have still to hand to this worker, for those after it in the schedule wait for them: tile by
    /// tile, as if it worked on, it takes them and lets go of them. `begun` tells the first tile that was not run.
    fn abandon(&mut self, plan: &LoopPlan, arrays: &mut dyn AnyArrays, begun: usize, cause: &str) {
        let mut each = arrays.each();
        each.iter_mut().for_each(|array| array.poison(cause));
        if self.fabric.spans_hosts() {
            // They are told by the clock table.
            return;
        }
        for tile in plan.tiles[self.rank() as usize].iter().skip(begun) {
            for (array, parts) in each.iter_mut().zip(&tile.parts).filter(|(array, _)| array.is_written()) {
                for part in parts.clone() {
                    // A part that another worker has let go of does not come either.
                    if array.take(self.fabric.worker, part).is_ok() {
                        array.poison(cause);
                    }
                }
            }
        }
    }

    /// Lends everything again; what this worker has in hand at the end is its own.
    fn end(&mut self, plan: &LoopPlan, arrays: &mut dyn AnyArrays, is_relaxed: bool) -> Result<()> {
        let me = self.rank();
        if plan.tasks.is_some() {
            return Ok(());
        }
        if is_relaxed {
            for array in relaxed(plan, arrays).iter_mut() {
                array.close(self.fabric.worker)?;
                array.finish_recall(self.fabric.worker)?;
                array.lend(self.fabric.worker)?;
            }
        }
        let kept = |(number, array): &(usize, &mut dyn LoopArray)| {
            array.is_written() && !plan.nest.relaxed.contains(number)
        };
        let mut meant = Vec::new();
        for (number, array) in arrays.each().into_iter().enumerate().filter(kept) {
            // Parts that were meant for this worker and that no tile of its needed.
            let owners = &array.layout().owners;
            meant.extend((0..owners.len()).filter(|part| owners[*part] == me).map(|part| (number, part)));
        }
        for part in meant {
            self.take_part(plan, arrays, part, &mut None)?;
        }
        let all = arrays.each().into_iter().enumerate();
        all.filter(kept).try_for_each(|(number, array)| {
            let is_read_elsewhere =
                || plan.reads_of(number).is_some_and(|reads| array.will_have_edges(reads));
            let rests_in_place =
                if plan.has_ghosts(number) { is_read_elsewhere() } else { plan.stays_put(number) };
            match rests_in_place {
                true => array.lend_in_place(self.fabric.worker),
                false => array.lend(self.fabric.worker),
            }
        })
    }
}
