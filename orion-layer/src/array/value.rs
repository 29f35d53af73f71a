//! The values of entries.
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Values of entries of sparse arrays: any serde type. Values that own memory go through serde when a loop first places them, on one
/// worker too.
pub trait Value: Serialize + DeserializeOwned + 'static {}
impl<T: Serialize + DeserializeOwned + 'static> Value for T {}
