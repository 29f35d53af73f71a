//! Random numbers: one generator for all tests.
pub use hectare_testing::Random;
