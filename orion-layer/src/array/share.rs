//! Showing bytes of each worker to all, through an area of each that the others read in place.
use crate::context::{Context, Say};
use crate::error::Result;
use crate::site::Site;
use hectare_dsm::{AreaSpec, Lent, Tracking, Worker};
use std::time::Duration;

/// How long a worker waits for what another has to show.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of the length, which comes first: an area has at least one element.
const HEAD: usize = 8;

/// Shows `bytes` to all: `visit` gets those of each worker, by rank. An error of one worker is an error of all.
/// Collective.
pub(crate) fn share_bytes(
    context: &mut Context<'_>,
    site: Site,
    bytes: Result<Vec<u8>>,
    mut visit: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let (me, number) = (context.rank(), context.next_number());
    let name = |rank: usize| format!("orion/shared/{number}/{rank}");
    let shown = bytes.and_then(|bytes| lend(context.worker(), &name(me as usize), &bytes));
    let (lent, shown) = shown.map_or_else(|error| (None, Err(error)), |lent| (Some(lent), Ok(())));
    let agreed = context.agree_on_same(site, shown);
    let visited = agreed.and_then(|()| {
        let visited = (0..context.size()).try_for_each(|rank| {
            let worker = context.worker();
            let area = worker.attach_within::<u8>(&name(rank), PATIENCE)?;
            let bytes = area.read_lent(worker)?;
            let len = u64::from_le_bytes(std::array::from_fn(|k| bytes[k])) as usize;
            visit(rank, &bytes[HEAD..HEAD + len])
        });
        context.agree_on_same(site, visited)
    });
    // Nobody reads any more; the memory is given back whether or not all went well.
    lent.map_or(Ok(()), |lent| lent.delete(context.worker()))?;
    visited?;
    context.exchange(site, Say::Value(&[]), |_, _| Ok(()))
}

fn lend(worker: &mut Worker, name: &str, bytes: &[u8]) -> Result<Lent<u8>> {
    let spec = AreaSpec::new(name).copies(0).tracking(Tracking::Whole);
    let mut owned = worker.create::<u8>(spec, HEAD + bytes.len())?;
    let (head, rest) = owned.write_whole(worker)?.split_at_mut(HEAD);
    head.copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    rest[..bytes.len()].copy_from_slice(bytes);
    Ok(owned.lend(worker).map_err(hectare_dsm::Error::from)?)
}
