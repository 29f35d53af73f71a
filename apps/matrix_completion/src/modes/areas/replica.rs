//! A worker's own copy of the model, and how rows get out of it and in.

use super::super::super::exchange::{Send, Share};
use super::super::super::kernel::{Element, Kernel, Kernels, Pass, Rate};
use super::super::super::model::Model;
use super::super::super::sweep::{AHEAD, Rows, Slices, idle, prefetch, prefetch_to_write};
use hectare::{AreaSpec, Owned, Result, Tracking, Worker};
use std::ops::Range;

/// How many rows of coming parcels are fetched per update.
const COMING: usize = 2;

/// A copy of the model in two areas that one worker owns. Rows that another worker wrote since are out of date
/// until they come in a parcel.
#[derive(Debug)]
pub struct Replica<E: Element> {
    pub users: Owned<E>,
    pub items: Owned<E>,
    /// Users: the row numbers of items begin there.
    pub first_item: u32,
    pub stride: usize,
}

impl<E: Element> Replica<E> {
    /// A replica of `model`. With `published` it has reader copies, and rows are logged when they are written;
    /// else nobody but its owner ever sees it.
    pub fn new(worker: &mut Worker, model: &Model<E>, published: bool) -> Result<Self> {
        let stride = model.layout().stride;
        let mut create = |name: &str, rows: &[E]| -> Result<Owned<E>> {
            let spec = AreaSpec::new(format!("replica/{}/{name}", worker.rank())).row(stride);
            let spec = if published { spec } else { spec.copies(0).tracking(Tracking::Whole) };
            let mut area = worker.create::<E>(spec, rows.len())?;
            area.write(worker)?.as_mut_slice().copy_from_slice(rows);
            Ok(area)
        };
        let users = create("users", model.users.as_slice())?;
        let items = create("items", model.items.as_slice())?;
        Ok(Self { users, items, first_item: model.users.rows() as u32, stride })
    }

    /// Learns from some of a batch's ratings, and copies every row that others need into its parcel as soon as
    /// nothing will change it any more: then it is still in the nearest cache. Meanwhile `coming`, which will be
    /// unpacked next, is fetched from the cache of the core that wrote it.
    pub fn learn(
        &mut self,
        worker: &Worker,
        work: &Work<'_, E>,
        part: Range<usize>,
        parcels: &mut [&mut [E]],
        coming: &[&[E]],
    ) -> Result<()> {
        let (mut users, mut items) = (self.users.write(worker)?, self.items.write(worker)?);
        let rows = Slices { users: users.as_mut_slice(), items: items.as_mut_slice() };
        let before = |place: usize| work.sends.partition_point(|send| (send.after as usize) < place);
        let sends = &work.sends[before(part.start)..before(part.end)];
        let pass = Packing { rows, first_item: self.first_item, work, part, sends, parcels, coming };
        work.kernels.run(work.rate, pass);
        Ok(())
    }

    /// Puts the rows of a parcel into their places.
    pub fn unpack(&mut self, worker: &Worker, rows: &[u32], parcel: &[E]) -> Result<()> {
        let (stride, first_item) = (self.stride, self.first_item);
        let (mut users, mut items) = (self.users.write(worker)?, self.items.write(worker)?);
        let (users, items) = (users.as_mut_slice(), items.as_mut_slice());
        for (slot, row) in rows.iter().enumerate() {
            if let Some(soon) = rows.get(slot + AHEAD) {
                prefetch(parcel.as_ptr(), (slot + AHEAD) as u32, stride);
                match soon.checked_sub(first_item) {
                    None => prefetch_to_write(users.as_ptr(), *soon, stride),
                    Some(item) => prefetch_to_write(items.as_ptr(), item, stride),
                }
            }
            let place = match row.checked_sub(first_item) {
                None => &mut users[*row as usize * stride..],
                Some(item) => &mut items[item as usize * stride..],
            };
            place[..stride].copy_from_slice(&parcel[slot * stride..][..stride]);
        }
        Ok(())
    }
}

/// The work of a worker in a batch.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a, E> {
    pub batch: usize,
    pub kernels: &'a Kernels<E>,
    pub rate: Rate<E>,
    pub share: Share<'a>,
    /// The rows that have to be sent after it.
    pub sends: &'a [Send],
    /// See [`Training::idle_turns`](super::super::super::train::Training::idle_turns).
    pub idle_turns: u32,
}

/// One update per rating, in order, and each row that has to be sent copied after its last.
struct Packing<'a, 'p, E> {
    rows: Slices<'a, E>,
    first_item: u32,
    work: &'a Work<'a, E>,
    part: Range<usize>,
    sends: &'a [Send],
    parcels: &'a mut [&'p mut [E]],
    coming: &'a [&'a [E]],
}

impl<E: Element> Pass<E> for Packing<'_, '_, E> {
    type Out = ();

    #[inline(always)]
    fn run<K: Kernel<E>>(mut self, kernel: K) {
        let stride = kernel.stride();
        let (ratings, mut sends) = (self.work.share.ratings, self.sends);
        let mut coming = self.coming.iter().flat_map(|parcel| parcel.chunks_exact(stride));
        for place in self.part {
            let rating = ratings[place];
            if let Some(soon) = ratings.get(place + AHEAD) {
                self.rows.prefetch(soon.user, soon.item, stride);
            }
            for row in coming.by_ref().take(COMING) {
                prefetch(row.as_ptr(), 0, stride);
            }
            let (user, item) = self.rows.pair(rating.user, rating.item, stride);
            kernel.update(user, item, E::from_f32(rating.value));
            idle(self.work.idle_turns);
            while let Some(send) = sends.first()
                && send.after as usize == place
            {
                if let Some(soon) = sends.get(AHEAD) {
                    prefetch_to_write(self.parcels[soon.to as usize].as_ptr(), soon.slot, stride);
                }
                let row = match send.row.checked_sub(self.first_item) {
                    None => &self.rows.users[send.row as usize * stride..][..stride],
                    Some(item) => &self.rows.items[item as usize * stride..][..stride],
                };
                let parcel = &mut self.parcels[send.to as usize];
                parcel[send.slot as usize * stride..][..stride].copy_from_slice(row);
                sends = &sends[1..];
            }
        }
    }
}
