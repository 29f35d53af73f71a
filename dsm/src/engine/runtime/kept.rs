//! Copies of areas that a worker reads until its next synchronization point.
use crate::engine::directory::AreaId;
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use std::any::Any;
use std::cell::RefCell;

/// The copies of one worker. They are let go of where it takes part in a round, and so has no views any more.
#[derive(Debug, Default)]
pub(crate) struct Kept(RefCell<Vec<Copied>>);

#[derive(Debug)]
struct Copied {
    area: AreaId,
    version: Version,
    /// A `Box<[T]>`.
    elements: Box<dyn Any>,
}

impl Kept {
    /// A copy of this version or a later one, or what `make` makes: the version and its elements.
    pub(crate) fn find<T: Element, E>(
        &self,
        area: AreaId,
        version: Version,
        make: impl FnOnce() -> Result<(Version, Box<[T]>), E>,
    ) -> Result<*const [T], E> {
        let is_it = |copied: &&Copied| copied.area == area && copied.version >= version;
        if let Some(known) = self.0.borrow().iter().find(is_it)
            && let Some(elements) = known.elements.downcast_ref::<Box<[T]>>()
        {
            return Ok(&raw const **elements);
        }
        let (version, elements) = make()?;
        // Boxes keep their place when the list grows.
        let place = &raw const *elements;
        self.0.borrow_mut().push(Copied { area, version, elements: Box::new(elements) });
        Ok(place)
    }

    /// Lets go of all; where the worker has no views any more.
    #[inline]
    pub(crate) fn forget(&self) {
        let mut all = self.0.borrow_mut();
        if !all.is_empty() {
            all.clear();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_once_and_stays_where_it_is() {
        let kept = Kept::default();
        let at = |index: u32| AreaId { index, generation: 1 };
        let version = |counter: u64| Version { term: 1, counter };
        let made = std::cell::Cell::new(0);
        let copy = |kept: &Kept, area: u32, of: u64| {
            let place = kept.find::<u32, ()>(at(area), version(of), || {
                made.set(made.get() + 1);
                Ok((version(of), vec![area; 3].into()))
            });
            place.unwrap()
        };
        let first = copy(&kept, 1, 5);
        let others: Vec<_> = (2..40).map(|area| copy(&kept, area, 5)).collect();
        assert_eq!((copy(&kept, 1, 5), copy(&kept, 1, 4), made.get()), (first, first, 39));
        // SAFETY: nothing was let go of yet.
        assert_eq!(unsafe { (&*first, &*others[0]) }, (&[1, 1, 1][..], &[2, 2, 2][..]));
        assert_ne!(copy(&kept, 1, 6), first);
        assert_eq!(kept.find::<u32, &str>(at(1), version(7), || Err("none")), Err("none"));
        kept.forget();
        assert!(kept.0.borrow().is_empty());
    }
}
