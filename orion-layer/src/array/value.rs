//! The values of entries.
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Values of entries of sparse arrays: any serde type.
pub trait Value: Serialize + DeserializeOwned + 'static {}
impl<T: Serialize + DeserializeOwned + 'static> Value for T {}
