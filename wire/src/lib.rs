//! The control protocol of Hectare on one host: messages, how they travel, and where the daemon is found.
//!
//! `DAEMON.md` beside the daemon's code describes the protocol. The daemon and all its clients share this
//! crate, so that there is one place where a message has a form.
#![forbid(unsafe_code)]
mod agent;
mod client;
mod error;
mod frame;
mod hosts;
mod launch;
mod member;
mod message;
mod page;
mod refusal;
mod run_dir;
mod settings;
mod socket;
mod transport;

pub use agent::{
    AgentConnection, AgentReply, AgentRequest, AgentSocket, AgentStatus, PeerStanding, SessionStanding,
    TraceAnswer, TraceStep, TraceWhat, listen_again_as_agent, listen_as_agent, remove_agents,
    remove_all_dead_agents, remove_dead_agents,
};
pub use client::Connection;
pub use error::{Error, Result};
pub use frame::{FrameError, MAX_MESSAGE, VERSION, decode, encode, encode_within};
pub use hosts::{Cipher, JobHost, JobHosts, MAX_HOSTS, UnknownCipher};
pub use launch::{Launch, LaunchError, LeftAlone};
pub use member::{Member, Membership};
pub use message::{ClientLine, JobLine, Reply, Request};
pub use page::{MemberState, PAGE_BYTES, Page};
pub use refusal::Refusal;
pub use run_dir::{METRICS, RunDir, SOCKET};
pub use settings::{JobSettings, Stall, check_job_name};
pub use socket::{Received, Socket};
pub use transport::{TransportChoice, UnknownTransport};
