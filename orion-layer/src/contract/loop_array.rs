//! The executor's interface to an array of a loop, whatever its type.
use super::{Applied, Layout, PassParams, Rule, Serves, Traffic, Treatment};
use crate::context::Context;
use crate::error::Result;
use crate::site::Site;
use hectare_dependence::loop_nest::NamedArray;
use hectare_dependence::reads::Reads;
use hectare_dsm::tasks::{InPlace, Runs};
use hectare_dsm::{Rank, SlotRing, Worker};
use std::time::Duration;

/// The executor's interface to one array. Moving, lending and clocks do nothing unless an array says otherwise: one that is
/// only read has a description and a check, and stays where it is.
pub trait LoopArray {
    /// The description of the array, under the name that the loop gives it.
    fn describe(&self, name: &str) -> NamedArray;
    /// A number that no other array of the program has.
    fn number(&self) -> u64;
    /// Whether the loop may write it.
    fn is_written(&self) -> bool;
    /// Refuses an array that a failed pass has left half written.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned).
    fn check(&self) -> Result<()>;
    /// How it is cut.
    fn layout(&self) -> &Layout;
    /// Cuts it again. Collective.
    ///
    /// # Errors
    /// Those of the exchange between workers, and of memory.
    fn rearrange(&mut self, _context: &mut Context<'_>, _site: Site, _to: &Layout) -> Result<()> {
        Ok(())
    }
    /// Cuts it again, and gives each part to whoever owns it there. Collective.
    ///
    /// # Errors
    /// Those of [`LoopArray::rearrange`].
    fn lie_as(&mut self, context: &mut Context<'_>, site: Site, to: &Layout) -> Result<()> {
        self.rearrange(context, site, to)
    }
    /// Fetches what this worker reads beyond its own parts in a pass that is about to write the array, and in which nobody else writes
    /// that.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn fetch_ghosts(&mut self, _worker: &Worker, _reads: &Reads) -> Result<()> {
        Ok(())
    }
    /// A loop over several hosts is about to read it, as it has done before: worker `w` is on host `host_of[w]`.
    fn expect_reads(&self, _reads: &Reads, _host_of: &[usize]) {}
    /// Tells `note` from which host to which other one bytes go when workers read so much of it: from, to, and how many.
    fn note_reads(&self, _reads: &Reads, _host_of: &[usize], _note: &mut dyn FnMut(usize, usize, usize)) {}
    /// Gets ready to send other hosts no more than what their workers will read of it ([`LoopArray::expect_reads`]), before a pass that
    /// writes it. Collective.
    ///
    /// # Errors
    /// Those of the exchange between workers, and of memory.
    fn meet_edges(&mut self, _context: &mut Context<'_>, _site: Site) -> Result<()> {
        Ok(())
    }
    /// Takes back what this worker lent.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn recall(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }
    /// Ends the recall, after a barrier.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn finish_recall(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }
    /// Waits for a part, unless this worker holds it.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core) when whoever could give it is gone.
    fn take(&mut self, _worker: &mut Worker, _part: usize) -> Result<()> {
        Ok(())
    }
    /// [`LoopArray::take`] with a limit; false if the part has not come by then. As it is here, for arrays that lie in no
    /// parts that are handed over in a pass: they never wait.
    ///
    /// # Errors
    /// Those of [`LoopArray::take`].
    fn take_within(&mut self, worker: &mut Worker, part: usize, _limit: Duration) -> Result<bool> {
        self.take(worker, part).map(|()| true)
    }
    /// Hands a part on.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn give(&mut self, _worker: &Worker, _part: usize, _to: Rank) -> Result<()> {
        Ok(())
    }
    /// Leaves a part to whoever acquires it first.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn release(&mut self, _worker: &Worker, _part: usize) -> Result<()> {
        Ok(())
    }
    /// Acquires a part that was released, unless this worker holds it; false if another has it. As it is here, for arrays
    /// that lie in no parts.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn acquire(&mut self, _worker: &Worker, _part: usize) -> Result<bool> {
        Ok(true)
    }
    /// Lends all that this worker holds.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn lend(&mut self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
    /// The same, where no loop writes it while others still read what was before. On several hosts, others are then sent what this worker
    /// holds when they ask for it, and it is not copied before.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn lend_in_place(&mut self, worker: &Worker) -> Result<()> {
        self.lend(worker)
    }
    /// Whether it was lent so, on several hosts: readers of the host have to come to a synchronization point when it is taken back.
    fn rests_lent(&self) -> bool {
        false
    }
    /// Whether all that workers read of each other's parts goes by itself ([`LoopArray::expect_reads`]), as it is now. The same on all
    /// workers.
    fn has_fresh_edges(&self, _reads: &Reads) -> bool {
        false
    }
    /// Whether that will be so when the parts are lent the next time.
    fn will_have_edges(&self, _reads: &Reads) -> bool {
        false
    }
    /// Has what was lent so published, for a loop that writes it while others still read what was before. Collective.
    ///
    /// # Errors
    /// Those of the exchange between workers, and [`Error::Core`](crate::Error::Core).
    fn publish_lent(&mut self, _context: &mut Context<'_>, _site: Site) -> Result<()> {
        Ok(())
    }
    /// Records who owns which part after a pass.
    fn set_owners(&mut self, _owners: &[Rank]) {}
    /// Lets go of everything: the pass has failed.
    fn poison(&mut self, cause: &str);

    /// Counts what may have changed it; no meaning but to be the same as before or not.
    fn version(&self) -> u64 {
        0
    }
    /// How contributions to it are merged, if they are. The same on every worker.
    fn rule(&self) -> Option<Rule<'_>> {
        None
    }
    /// How the loop treats it.
    fn treatment(&self) -> Treatment {
        Treatment::Exact
    }
    /// Lets everybody read and write what this worker holds.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn open(&mut self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
    /// Opens what this worker holds to the tasks of all workers: of an array that lies in one piece.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn open_to_tasks(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }
    /// The area of an array that lies in one piece; `None` for arrays that cannot lie in place.
    fn in_place(&self) -> Option<InPlace> {
        None
    }
    /// The runs of tasks over such an array that this worker has begun.
    fn runs(&mut self) -> Option<&mut Runs> {
        None
    }
    /// Leaves it open to tasks when all have ended a run, on all workers: until it is recalled.
    fn leave_open(&mut self) {}
    /// Whether it was left so.
    fn rests_open(&self) -> bool {
        false
    }
    /// Takes back what this worker opened; ended as a recall is.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn close(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }
    /// Asks other hosts for what [`LoopArray::enter`] will read, so that it waits once for all arrays of a loop.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn ask(&self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
    /// Makes what others will look for in [`LoopArray::enter`], if it is not there: a worker that has no memory for it says so before
    /// they do. Whether others have still to be found, the same on all workers.
    ///
    /// # Errors
    /// Of memory.
    fn make_shared(&mut self, _worker: &mut Worker, _params: &PassParams) -> Result<bool> {
        Ok(false)
    }
    /// Begins a pass in which the array is relaxed or buffered, and open. Whether it takes part in clocks.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn enter(&mut self, _worker: &mut Worker, _params: &PassParams) -> Result<bool> {
        Ok(false)
    }
    /// Where what this worker contributes is on its way, if it contributes: a slot is used again when all have read it.
    fn slots(&self) -> Option<SlotRing> {
        None
    }
    /// Publishes what this worker did to it in clock `clock`: to all of it, if it is a clock of the `whole`, else to its head
    /// ([`Tail`](super::Tail)).
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn publish(&mut self, _worker: &Worker, _clock: u64, _whole: bool) -> Result<Traffic> {
        Ok(Traffic::default())
    }
    /// Up to which clock that which worker `rank` published can be read here; clocks themselves may come sooner.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn clock_of(&self, _worker: &Worker, _rank: usize) -> Result<u64> {
        Ok(u64::MAX)
    }
    /// Whether there is more to publish than there is room for.
    fn is_crowded(&self) -> bool {
        false
    }
    /// Makes room for it, when all have applied what was published before.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn make_room(&mut self, _worker: &mut Worker) -> Result<()> {
        Ok(())
    }
    /// The interface of served arrays, if it is one.
    fn serves(&mut self) -> Option<&mut dyn Serves> {
        None
    }
    /// Applies what worker `from` contributed in clock `clock` to this worker's share.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn apply(&mut self, _worker: &Worker, _from: usize, _clock: u64) -> Result<()> {
        Ok(())
    }
    /// Learns what others did in the clocks that they have published, `published` of each. Which contributions
    /// are merged says `applied`. At a clock of the `whole` it learns of all of it, else of its head.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn refresh(
        &mut self,
        _worker: &Worker,
        _published: &[u64],
        _applied: Applied<'_>,
        _whole: bool,
    ) -> Result<Traffic> {
        Ok(Traffic::default())
    }
    /// Merges what all contributed to it, after a pass that went well everywhere. Collective.
    ///
    /// # Errors
    /// The same on every worker.
    fn settle(&mut self, _context: &mut Context<'_>, _site: Site) -> Result<()> {
        Ok(())
    }
    /// The pass has failed after all, when this array was settled already.
    fn unsettle(&mut self, _cause: &str) {}
    /// Writes this worker's share of the array at the end of the pass.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn fold(&mut self, _worker: &Worker, _published: &[u64]) -> Result<()> {
        Ok(())
    }
}
