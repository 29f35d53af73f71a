//! State of the layers above, which this one does not know, for as long as the program runs: one value of each type.
use std::any::{Any, TypeId};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Extensions(HashMap<TypeId, Box<dyn Any>>);

impl Extensions {
    /// The value of this type, if there is one.
    pub(crate) fn get<K: Any>(&self) -> Option<&K> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref()
    }

    /// The value of this type, to be changed.
    pub(crate) fn get_mut<K: Any>(&mut self) -> Option<&mut K> {
        self.0.get_mut(&TypeId::of::<K>())?.downcast_mut()
    }

    /// Keeps a value instead of the one of its type.
    pub(crate) fn put<K: Any>(&mut self, value: K) {
        self.0.insert(TypeId::of::<K>(), Box::new(value));
    }
}
