//! Showing bytes of each worker to all.
use crate::context::{Context, Outcome};
use crate::error::Result;
use crate::fabric::{Fabric, Parcel, Parcels};
use crate::site::Site;

/// Shows `bytes` to all: `visit` gets those of each worker, by rank. An error of one worker is an error of all.
/// Collective.
pub(crate) fn share_bytes(
    context: &mut Context<'_>,
    site: Site,
    bytes: Result<Vec<u8>>,
    visit: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let name = format!("orion/shared/{}", context.next_number());
    let shown = bytes.and_then(|bytes| {
        let fabric = &mut context.fabric;
        fabric.offer(&name, Parcels::OneForAll(bytes.len()), &mut |parcel| parcel.copy_from_slice(&bytes))
    });
    let agreed = context.agree_on_same(site, shown);
    let visited = agreed.and_then(|()| {
        let visited = (0..context.size()).try_for_each(|rank| {
            context.fabric.fetch(&name, rank, Parcel::ForAll, &mut |bytes| visit(rank, bytes))
        });
        context.agree_on_same(site, visited)
    });
    // Nobody reads any more; the memory is given back whether or not all went well.
    context.fabric.withdraw(&name)?;
    visited?;
    context.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))
}
