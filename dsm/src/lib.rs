//! The core of Hectare on one host: areas, the write log, internal sync, ownership and workers.
