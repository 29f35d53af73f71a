//! Workers that share a segment: a frame is a published area of each worker, read in place after a barrier; parcels are an
//! area of their sender's, lent to all.
use super::{Fabric, Write};
use crate::error::Result;
use hectare_dsm::{Area, AreaSpec, Lent, Owned, Rank, Tracking, Worker, WorkerState};
use std::time::Duration;

/// How long a worker waits for the parcels that another has said to offer.
const PATIENCE: Duration = Duration::from_secs(20);

/// One worker of a job, and its view of the others.
#[derive(Debug)]
pub(crate) struct SharedMemory<'w> {
    pub(crate) worker: &'w mut Worker,
    /// Where this worker writes its frames; `None` when it has left its exit notice.
    mine: Option<Owned<u8>>,
    frames: Vec<Area<u8>>,
    offered: Vec<(String, Lent<u8>)>,
}

fn mailbox(rank: usize) -> String {
    format!("orion/mail/{rank}")
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(std::array::from_fn(|k| bytes[at * 8 + k])) as usize
}

impl<'w> SharedMemory<'w> {
    /// Meets workers `0..size` of the job, all of whom call this, with room for frames of `longest` bytes.
    pub(crate) fn meet(
        worker: &'w mut Worker,
        size: usize,
        longest: usize,
        patience: Duration,
    ) -> Result<SharedMemory<'w>> {
        worker.wait_for_workers(size, patience)?;
        let mine = worker.create::<u8>(AreaSpec::new(mailbox(worker.rank() as usize)), longest)?;
        let mut frames = Vec::with_capacity(size);
        for rank in 0..size {
            frames.push(worker.attach_within::<u8>(&mailbox(rank), patience)?);
        }
        Ok(SharedMemory { worker, mine: Some(mine), frames, offered: Vec::new() })
    }
}

impl Fabric for SharedMemory<'_> {
    fn rank(&self) -> Rank {
        self.worker.rank()
    }

    fn size(&self) -> usize {
        self.frames.len()
    }

    fn post(&mut self, len: usize, write: Write<'_>) -> Result<()> {
        if let Some(mine) = &mut self.mine {
            write(mine.write(self.worker)?.range_mut(0..len));
        }
        Ok(self.worker.barrier()?)
    }

    fn frame(&self, rank: usize) -> Result<&[u8]> {
        Ok(self.frames[rank].read(self.worker)?)
    }

    fn leave(&mut self, len: usize, write: Write<'_>) -> Result<()> {
        let Some(mut mine) = self.mine.take() else { return Ok(()) };
        write(mine.write(self.worker)?.range_mut(0..len));
        // A lent area needs no round to be read, and stays when its worker has left.
        mine.lend(self.worker).map_err(hectare_dsm::Error::from)?;
        Ok(())
    }

    fn left_by(&self, rank: usize) -> Option<&[u8]> {
        self.frames[rank].read_lent(self.worker).ok()
    }

    fn is_alive(&self, rank: usize) -> bool {
        let workers = self.worker.job().workers().unwrap_or_default();
        workers.iter().any(|other| other.rank as usize == rank && other.state != WorkerState::Dead)
    }

    /// The area begins with a table of where the parcels do, and where the last ends.
    fn offer(&mut self, name: &str, lengths: &[usize], write: Write<'_>) -> Result<()> {
        let head = (lengths.len() + 1) * 8;
        let spec = AreaSpec::new(format!("{name}/{}", self.rank())).copies(0).tracking(Tracking::Whole);
        let mut owned = self.worker.create::<u8>(spec, head + lengths.iter().sum::<usize>())?;
        let (table, parcels) = owned.write_whole(self.worker)?.split_at_mut(head);
        let mut end = head;
        for (place, len) in table.chunks_exact_mut(8).zip(std::iter::once(&0).chain(lengths)) {
            end += len;
            place.copy_from_slice(&(end as u64).to_le_bytes());
        }
        write(parcels);
        let lent = owned.lend(self.worker).map_err(hectare_dsm::Error::from)?;
        self.offered.push((name.into(), lent));
        Ok(())
    }

    fn fetch(
        &mut self,
        name: &str,
        rank: usize,
        number: usize,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let area = self.worker.attach_within::<u8>(&format!("{name}/{rank}"), PATIENCE)?;
        let bytes = area.read_lent(self.worker)?;
        visit(&bytes[word(bytes, number)..word(bytes, number + 1)])
    }

    fn withdraw(&mut self, name: &str) -> Result<()> {
        while let Some(at) = self.offered.iter().position(|(offered, _)| offered == name) {
            self.offered.swap_remove(at).1.delete(self.worker)?;
        }
        Ok(())
    }
}
