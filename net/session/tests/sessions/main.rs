//! Endpoints over a network that loses, delays, doubles, reorders and changes datagrams, on virtual time.
mod congestion;
mod handshakes;
mod hostile;
mod inputs;
mod network;
mod tcp;
mod transfers;
