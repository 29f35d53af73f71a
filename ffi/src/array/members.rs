//! A member's side of an array: its areas, and reductions.
//!
//! A reduction is two barriers. The first publishes what the members wrote, and in an area of each member the ranges
//! that it names. Then the master's owner combines the ranges out of the members' reader copies into the master, and
//! says so in a word of its own; the second barrier publishes that. A member finds in that word whether its reduction
//! was completed.
use crate::reduce::{ha_operation, operation_of};
use crate::status::{Failure, Outcome, ha_status::*, protect};
use crate::wait::ha_range;
use hectare_dsm::{Area, AreaSpec, Number, Owned, Rank, Worker};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::time::Duration;

/// How long members wait for each other's areas to be created.
const CREATION: Duration = Duration::from_secs(30);

/// Where a member's area of ranges has the number of the reduction, the number of ranges, the operation, and a hash of the list of
/// members; the ranges follow.
const CALL: usize = 0;
const COUNT: usize = 1;
const OPERATION: usize = 2;
const MEMBERS: usize = 3;
const RANGES: usize = 4;
/// Instead of a number of ranges: the member's arguments were wrong.
const REFUSED: u64 = u64::MAX;

/// A member's side of an array.
pub(super) struct Array<T: Number> {
    locals: Vec<Area<T>>,
    ranges: Vec<Area<u64>>,
    mine: Owned<u64>,
    master: Area<T>,
    state: Area<u64>,
    /// The first member's right to write the master, and the word that says which reduction it has completed.
    root: Option<(Owned<T>, Owned<u64>)>,
    members: Vec<Rank>,
    call: u64,
    room: usize,
    /// How many members name an element; zero between two reductions.
    counts: Vec<u32>,
}

/// An array of whatever type.
pub(super) trait AnyArray {
    fn reduce(&mut self, worker: &mut Worker, operation: ha_operation, ranges: &[ha_range]) -> Outcome;
    fn master(&self, worker: &Worker) -> Outcome<*const u8>;
}

impl<T: Number> Array<T> {
    pub(super) fn new(
        worker: &mut Worker,
        name: &str,
        spec: AreaSpec,
        len: usize,
        members: Vec<Rank>,
        room: usize,
    ) -> Outcome<(Array<T>, Owned<T>)> {
        let bad = |text: String| Err(Failure::new(HA_INVALID_AREA, format!("array {name:?}: {text}")));
        let me = worker.rank();
        if members.iter().filter(|rank| **rank == me).count() != 1 {
            return bad(format!("worker {me} must be among the members {members:?} once"));
        }
        let Some(words) = room.checked_mul(2).and_then(|words| words.checked_add(RANGES)) else {
            return bad(format!("room for {room} ranges"));
        };
        let root = members[0] == me;
        let local = worker.create::<T>(spec, len)?;
        let mine = worker.create::<u64>(format!("{name}/ranges/{me}"), words)?;
        let root = if root {
            let master = worker.create::<T>(format!("{name}/master"), len)?;
            Some((master, worker.create::<u64>(format!("{name}/state"), 2)?))
        } else {
            None
        };
        let master = worker.attach_within(&format!("{name}/master"), CREATION)?;
        let state = worker.attach_within(&format!("{name}/state"), CREATION)?;
        let mut locals = Vec::with_capacity(members.len());
        let mut ranges = Vec::with_capacity(members.len());
        for rank in &members {
            locals.push(worker.attach_within::<T>(&format!("{name}/{rank}"), CREATION)?);
            ranges.push(worker.attach_within::<u64>(&format!("{name}/ranges/{rank}"), CREATION)?);
        }
        if let Some(other) = locals.iter().find(|other| other.len() != len) {
            return bad(format!("{len} elements, but {:?} has {}", other.name(), other.len()));
        }
        let counts = Vec::new();
        Ok((Array { locals, ranges, mine, master, state, root, members, call: 0, room, counts }, local))
    }

    /// The ranges that a member names, if it came to this reduction.
    fn named<'w>(&self, worker: &'w Worker, place: usize) -> Outcome<&'w [[u64; 2]]> {
        let words = self.ranges[place].read(worker)?;
        let rank = self.members[place];
        if words.get(CALL) != Some(&self.call) {
            let text = format!("worker {rank} did not come to reduction {}", self.call);
            return Err(Failure::new(HA_NO_SUCH_WORKER, text));
        }
        let (count, list) = (words[COUNT] as usize, words[RANGES..].as_chunks::<2>().0);
        list.get(..count).ok_or_else(|| {
            Failure::new(
                HA_CALLBACK,
                format!("worker {rank} came to the reduction with arguments that were refused"),
            )
        })
    }

    /// Whether all members that came to this reduction have the same list of members, and want the same operation.
    fn agree(&self, worker: &Worker, operation: ha_operation) -> Outcome {
        let (me, list) = (worker.rank(), FxBuildHasher.hash_one(&self.members));
        for (ranges, rank) in self.ranges.iter().zip(&self.members) {
            let words = ranges.read(worker)?;
            // Of one that did not come, or whose area is another, `named` says so.
            if words.len() < RANGES || words[CALL] != self.call {
                continue;
            }
            if words[MEMBERS] != list {
                let text = format!(
                    "worker {rank} made the array of other members, or in another order, than worker {me}: {:?}",
                    self.members
                );
                return Err(Failure::new(HA_BAD_ARGUMENT, text));
            }
            if words[OPERATION] != operation as u64 {
                let theirs = operation_of(words[OPERATION] as u32)?;
                let text = format!(
                    "reduction {}: worker {rank} came with {theirs:?}, and worker {me} with {operation:?}",
                    self.call
                );
                return Err(Failure::new(HA_BAD_ARGUMENT, text));
            }
        }
        Ok(())
    }

    /// The first member's part, between the barriers.
    fn combine(&mut self, worker: &Worker, operation: ha_operation) -> Outcome {
        let Some((mut master, state)) = self.root.take() else { return Ok(()) };
        let done = self.combine_into(worker, operation, &mut master);
        self.root = Some((master, state));
        done
    }

    fn combine_into(&mut self, worker: &Worker, operation: ha_operation, master: &mut Owned<T>) -> Outcome {
        use ha_operation::*;
        let mut guard = master.write(worker)?;
        let every = (0..self.members.len())
            .map(|place| Ok((self.locals[place].read(worker)?, self.named(worker, place)?)));
        let every: Vec<(&[T], &[[u64; 2]])> = every.collect::<Outcome<_>>()?;
        let len = guard.len();
        let bounds = |range: &[u64; 2]| range[0] as usize..(range[0] + range[1]) as usize;
        // Written by the other members, who checked them; but the areas are anybody's to write.
        if every.iter().any(|(_, list)| {
            list.iter().any(|range| range[0].checked_add(range[1]).is_none_or(|end| end > len as u64))
        }) {
            return Err(Failure::new(HA_OUT_OF_RANGE, format!("a range outside an array of {len} elements")));
        }
        if operation == HA_LAST {
            for (local, list) in &every {
                for range in *list {
                    guard.range_mut(bounds(range)).copy_from_slice(&local[bounds(range)]);
                }
            }
            return Ok(());
        }
        // The first who names an element sets it, the others join theirs.
        let mut counts = std::mem::take(&mut self.counts);
        counts.resize(len, 0);
        for (local, list) in &every {
            for range in *list {
                let range = bounds(range);
                let sources = local[range.clone()].iter().zip(&mut counts[range.clone()]);
                for (out, (value, count)) in guard.range_mut(range).iter_mut().zip(sources) {
                    *out = match (*count, operation) {
                        (0, _) => *value,
                        (_, HA_MAX) => out.larger(*value),
                        _ => out.plus(*value),
                    };
                    *count += 1;
                }
            }
        }
        if operation == HA_MEAN {
            for (_, list) in &every {
                for range in *list {
                    let range = bounds(range);
                    for (out, count) in guard.range_mut(range.clone()).iter_mut().zip(&mut counts[range]) {
                        // Once: the next member that names the element finds a 1.
                        *out = out.divided((*count).max(1) as usize);
                        *count = 1;
                    }
                }
            }
        }
        for (_, list) in &every {
            list.iter().for_each(|range| counts[bounds(range)].fill(0));
        }
        self.counts = counts;
        Ok(())
    }
}

impl<T: Number> AnyArray for Array<T> {
    fn reduce(&mut self, worker: &mut Worker, operation: ha_operation, ranges: &[ha_range]) -> Outcome {
        self.call += 1;
        let (call, len) = (self.call, self.master.len());
        let outside =
            ranges.iter().find(|range| range.first.checked_add(range.count).is_none_or(|end| end > len));
        let refused = match outside {
            Some(range) => Err(Failure::new(
                HA_OUT_OF_RANGE,
                format!(
                    "{} elements from {} lie outside an array of {len} elements",
                    range.count, range.first
                ),
            )),
            None if ranges.len() > self.room => {
                let text =
                    format!("{} ranges, but the array was made with room for {}", ranges.len(), self.room);
                Err(Failure::new(HA_LIMIT, text))
            }
            None => Ok(()),
        };
        // Whoever is refused comes to the barriers all the same: the others wait for it.
        {
            let mut words = self.mine.write(worker)?;
            words.set(CALL, call);
            words.set(COUNT, if refused.is_ok() { ranges.len() as u64 } else { REFUSED });
            words.set(OPERATION, operation as u64);
            words.set(MEMBERS, FxBuildHasher.hash_one(&self.members));
            if refused.is_ok() {
                let list = words.range_mut(RANGES..RANGES + 2 * ranges.len());
                for (place, range) in list.chunks_exact_mut(2).zip(ranges) {
                    place.copy_from_slice(&[range.first as u64, range.count as u64]);
                }
            }
        }
        worker.barrier()?;
        let combined = protect(|| {
            self.agree(worker, operation)?;
            self.combine(worker, operation)
        });
        if let Some((_, state)) = &mut self.root {
            let mut words = state.write(worker)?;
            words.set(0, call);
            words.set(1, u64::from(combined.is_err()));
        }
        worker.barrier()?;
        refused?;
        combined?;
        match self.state.read(worker)? {
            [done, 0] if *done == call => Ok(()),
            [done, _] if *done == call => {
                let text =
                    "the first member could not combine: a member is dead, or came with wrong arguments";
                Err(Failure::new(HA_CALLBACK, text))
            }
            _ => {
                let text =
                    format!("worker {}, the first member, did not complete the reduction", self.members[0]);
                Err(Failure::new(HA_NO_SUCH_WORKER, text))
            }
        }
    }

    fn master(&self, worker: &Worker) -> Outcome<*const u8> {
        Ok(self.master.read(worker)?.as_ptr().cast())
    }
}
