//! Workers find areas.
use super::handle::Area;
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::directory::find::attach_timed_out;
use crate::engine::wanted::Wanting;
use crate::error::{Error, Result};
use crate::segment::element::{Element, ElementType};
use std::sync::Arc;
use std::time::Duration;

impl Worker {
    /// Attaches to an area that exists. See also [`Worker::attach_within`].
    ///
    /// # Errors
    /// [`Error::NoSuchArea`], [`Error::WrongType`], [`Error::ForkedChild`].
    pub fn attach<T: Element>(&self, name: &str) -> Result<Area<T>> {
        self.shared().check_process()?;
        Area::attach(self.shared(), name)
    }

    /// Attaches to an area, waiting for it to be created; takes part in rounds meanwhile.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and those of [`Worker::attach`].
    pub fn attach_within<T: Element>(&mut self, name: &str, timeout: Duration) -> Result<Area<T>> {
        let mut wanting = Wanting::default();
        self.wait_until(
            timeout,
            |worker| match worker.attach(name) {
                Err(Error::NoSuchArea { .. }) => {
                    wanting.ask(worker.shared(), name);
                    Ok(None)
                }
                other => other.map(Some),
            },
            |worker, waited| attach_timed_out(worker.shared(), name, waited),
        )
    }

    /// Finds an area by name, as a handle that knows no type yet.
    pub(crate) fn find<T: Element>(&self, name: &str) -> Result<Arc<AreaCore>> {
        self.shared().check_process()?;
        Ok(Arc::new(AreaCore::find(self.shared(), name, ElementType::of::<T>())?))
    }
}
