//! From two hosts that share a key to a session: Noise XXpsk0 behind a cookie.
pub(crate) mod cookie;
pub(crate) mod initiator;
pub(crate) mod noise;
pub(crate) mod responder;
