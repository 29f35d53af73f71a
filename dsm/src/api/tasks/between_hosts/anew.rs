//! Areas that the runtime makes for itself.
use crate::api::area::owned::Owned;
use crate::api::worker::Worker;
use crate::engine::directory::spec::AreaSpec;
use crate::error::{Error, Result};
use crate::segment::element::Element;

/// Makes an area of the runtime's own, in the place of one that a worker has left behind that is gone.
pub(super) fn make<T: Element>(worker: &mut Worker, spec: AreaSpec, len: usize) -> Result<Owned<T>> {
    match worker.create::<T>(spec.clone(), len) {
        Err(Error::NameTaken { .. }) => {
            let left = worker.attach_here::<T>(&spec.name)?;
            let word = left.core.ownership();
            // A program may have an area of the name.
            if word.is_remote() || word.holder().is_some_and(|owner| !worker.shared().is_gone(owner)) {
                return Err(Error::NameTaken { name: spec.name, holder: word.to_string() });
            }
            worker.delete(left.core.id)?;
            worker.create(spec, len)
        }
        made => made,
    }
}
