//! The content of the load's areas: a pure function of the area, the version and the owner who wrote it, so
//! that whoever sees a version can tell whether every byte of it is the owner's.
use hectare_dsm::{Area, Owned, Result, Version, Worker};
use std::ops::Range;

/// Elements at the start of an area that say who wrote the version.
pub(crate) const HEAD: usize = 8;
/// A version rewrites one block of so many; the others keep what earlier versions wrote.
const BLOCKS: u64 = 5;

/// Who wrote a version, as its first elements say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) counter: u64,
    pub(crate) epoch: u64,
    /// The number of a worker's life: its process and a counter.
    pub(crate) life: u64,
    pub(crate) area: u64,
}

/// The content of an area as a worker reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    /// `None` of an area that nothing was published of.
    pub(crate) head: Option<Head>,
}

/// A finalizer of 64 bits (Stafford's variant 13, 2011).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn element(area: u64, written_at: u64, index: usize) -> u64 {
    if written_at == 0 { 0 } else { mix(area << 56 ^ written_at << 24 ^ index as u64) }
}

/// Where block `block` of an area of `len` elements lies.
pub(crate) fn block_of(len: usize, block: u64) -> Range<usize> {
    let at = |block: u64| HEAD + ((len - HEAD) as u64 * block / BLOCKS) as usize;
    at(block)..at(block + 1)
}

/// The block that version `counter` rewrites.
pub(crate) fn block_at(counter: u64) -> u64 {
    counter % BLOCKS
}

/// The last version up to `counter` that wrote block `block`; 0 if none did.
fn written_at(counter: u64, block: u64) -> u64 {
    let since = (counter % BLOCKS + BLOCKS - block) % BLOCKS;
    counter.saturating_sub(since)
}

/// The elements of a block at version `counter`.
pub(crate) fn fill_block(data: &mut [u64], start: usize, area: u64, counter: u64) {
    for (index, value) in (start..).zip(data) {
        *value = element(area, counter, index);
    }
}

/// Writes the next version of an area, by one of three ways. `middle` is called when half of it is written.
pub(crate) fn write(
    owned: &mut Owned<u64>,
    worker: &Worker,
    area: u64,
    life: u64,
    middle: &mut dyn FnMut(),
) -> Result<u64> {
    let counter = owned.area().newest_version().map_or(0, |version| version.counter) + 1;
    let head = [counter, owned.epoch(), life, area, !counter, !life, 0, 0];
    let block = block_of(owned.len(), block_at(counter));
    match counter % 3 {
        0 => {
            let mut guard = owned.write(worker)?;
            guard.range_mut(0..HEAD).copy_from_slice(&head);
            middle();
            fill_block(guard.range_mut(block.clone()), block.start, area, counter);
        }
        1 => {
            let mut guard = owned.write(worker)?;
            for (index, value) in head.into_iter().enumerate() {
                guard.set(index, value);
            }
            let half = block.start + block.len() / 2;
            fill_block(guard.range_mut(block.start..half), block.start, area, counter);
            middle();
            fill_block(guard.range_mut(half..block.end), half, area, counter);
        }
        _ => {
            let data = owned.as_mut_ptr(worker)?;
            crate::system::fill_raw(data, 0, &head);
            let mut values = vec![0; block.len()];
            fill_block(&mut values, block.start, area, counter);
            crate::system::fill_raw(data, block.start, &values);
            owned.log(worker, 0..HEAD)?;
            middle();
            owned.log(worker, block)?;
        }
    }
    Ok(counter)
}

/// Reads an area and checks every element of it. The error says what is wrong with promise A.
pub(crate) fn look(area: &Area<u64>, worker: &Worker, number: u64) -> Result<Result<Seen, String>> {
    let version = area.version(worker)?;
    let data = area.read(worker)?;
    Ok(check(data, version, number))
}

/// Whether `data` is what some owner wrote as version `version` of area `number`.
pub(crate) fn check(data: &[u64], version: Version, number: u64) -> Result<Seen, String> {
    let counter = version.counter;
    let head = Head { counter: data[0], epoch: data[1], life: data[2], area: data[3] };
    if counter == 0 {
        let clean = data.iter().all(|value| *value == 0);
        return if clean { Ok(Seen { version, head: None }) } else { Err("version 0 is not zero".into()) };
    }
    if head.counter != counter || head.area != number || data[4] != !head.counter || data[5] != !head.life {
        return Err(format!("version {version} of area {number} begins with {:x?}", &data[..HEAD]));
    }
    for block in 0..BLOCKS {
        let at = written_at(counter, block);
        for index in block_of(data.len(), block) {
            if data[index] != element(number, at, index) {
                let (found, wanted) = (data[index], element(number, at, index));
                return Err(format!(
                    "version {version} of area {number}: element {index} is {found:#x}, not {wanted:#x} of {at}"
                ));
            }
        }
    }
    Ok(Seen { version, head: Some(head) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(len: usize, last: u64) -> Vec<u64> {
        let mut data = vec![0; len];
        for counter in 1..=last {
            data[..HEAD].copy_from_slice(&[counter, 7, 9, 3, !counter, !9, 0, 0]);
            let block = block_of(len, block_at(counter));
            fill_block(&mut data[block.clone()], block.start, 3, counter);
        }
        data
    }

    #[test]
    fn every_version_is_known_and_every_change_is_found() {
        for last in 0..23 {
            let mut data = versions(100, last);
            let version = Version { term: 1, counter: last };
            assert!(check(&data, version, 3).is_ok());
            assert!(check(&data, Version { term: 1, counter: last + 1 }, 3).is_err());
            for index in [0, 2, 3, HEAD, 50, 99] {
                data[index] ^= 1 << 40;
                assert!(check(&data, version, 3).is_err(), "element {index} of version {last}");
                data[index] ^= 1 << 40;
            }
        }
        assert!(check(&versions(100, 4), Version { term: 1, counter: 4 }, 2).is_err());
    }
}
