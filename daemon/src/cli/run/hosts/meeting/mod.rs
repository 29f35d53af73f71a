//! The rendezvous of the hosts of a program that a launcher has started on each of them: one process of each host connects to the
//! host of rank 0, says which ranks its host has and where its agent will be, and is told the same of all others. When it has made its
//! part of the job, it says so, and is told when all have, or who could not.
//!
//! Each side shows by an HMAC over the other's random bytes that it has the cluster's key. Lines of JSON, behind their HMAC.
mod elsewhere;
mod guest;
mod host;
mod line;

use crate::cli::failure::HostFailed;
use crate::cli::output::one_line;
use anyhow::Result;
use hectare_session::ClusterKey;
use hectare_wire::JobHost;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub(super) use guest::{Attendance, go};
pub(super) use host::{Attended, hold};

/// The first word of the meeting place's first line, and the version of what is said.
const GREETING: &str = "hectare-meeting 2";
/// Between two attempts to reach the meeting place.
const AGAIN: Duration = Duration::from_millis(100);
/// How long one line may take.
const LINE_WITHIN: Duration = Duration::from_secs(5);

/// A host's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guest {
    pub(super) job: String,
    pub(super) size: u32,
    pub(super) first: u32,
    pub(super) ranks: u32,
    pub(super) name: String,
    /// Where its agent will be.
    pub(super) address: SocketAddr,
    /// And at a port of DPDK, if it has one.
    pub(super) dpdk: Option<Ipv4Addr>,
    /// Random bytes, which the answer has to be about.
    pub(super) nonce: [u8; 32],
}

/// The agreement that all hosts receive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    pub(super) id: [u8; 16],
    pub(super) hosts: Vec<JobHost>,
    /// Why there is no job.
    pub(super) refused: Option<String>,
}

/// Whether a host has made its part of the job, or all have theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    refused: Option<Refused>,
}

/// The host that could not, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Refused {
    host: String,
    what: String,
}

impl Made {
    fn of(host: &str, made: &Result<()>) -> Made {
        let refused = |error| Refused { host: host.to_owned(), what: one_line(error) };
        Made { refused: made.as_ref().err().map(refused) }
    }

    /// That a host could not, as an error.
    fn check(self) -> Result<()> {
        match self.refused {
            Some(Refused { host, what }) => Err(HostFailed::new(host, what).into()),
            None => Ok(()),
        }
    }
}

pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow::anyhow!("the system provides no random numbers"))?;
    Ok(bytes)
}

fn hmac_key(key: &ClusterKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.meeting_key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    fn key(secret: u8) -> ClusterKey {
        ClusterKey::new("lab", [secret; 32]).unwrap()
    }

    fn guest(first: u32, address: &str) -> Guest {
        Guest {
            job: "j".into(),
            size: 2,
            first,
            ranks: 1,
            name: format!("h{first}"),
            address: address.parse().unwrap(),
            dpdk: None,
            nonce: random().unwrap(),
        }
    }

    /// A meeting place, its address, and until when it is waited there.
    fn place() -> (TcpListener, SocketAddr, Instant) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at, Instant::now() + Duration::from_secs(30))
    }

    /// The meeting place's end and a guest's, of whom the one has made its part, or not.
    fn meet(made: fn() -> Result<()>) -> [Result<()>; 2] {
        let (listener, at, deadline) = place();
        std::thread::scope(|scope| {
            let host = scope.spawn(move || {
                let own = |_| Ok(guest(0, "10.0.0.1:1"));
                let (agreed, attended) = hold(listener, None, &key(1), deadline, (1, 2), "; who?", own)?
                    .expect("nobody is elsewhere");
                assert_eq!(agreed.hosts.len(), 2);
                attended.conclude("h0", Ok(()))
            });
            let guest = scope.spawn(move || {
                let (agreed, attendance) =
                    go(("h0".into(), at), &key(1), deadline, |_| Ok(guest(1, "10.0.0.2:1")))?;
                assert_eq!(agreed.hosts.len(), 2);
                attendance.conclude("h1", made())
            });
            [host.join().unwrap(), guest.join().unwrap()]
        })
    }

    fn said(result: &Result<()>) -> String {
        result.as_ref().unwrap_err().to_string()
    }

    #[test]
    fn all_hosts_hear_whether_all_have_made_their_parts() {
        for result in meet(|| Ok(())) {
            result.unwrap();
        }
        let [host, guest] = meet(|| anyhow::bail!("no room"));
        assert_eq!((said(&host), said(&guest)), ("host h1: no room".into(), "no room".into()));
    }

    #[test]
    fn who_has_another_key_hears_so_at_once_and_ends_no_start() {
        let (listener, at, deadline) = place();
        std::thread::scope(|scope| {
            let come = move |secret| {
                go(("h0".into(), at), &key(secret), deadline, |_| Ok(guest(1, "10.0.0.2:1"))).map(drop)
            };
            let others = scope.spawn(move || (said(&come(2)), come(1)));
            let own = |_| Ok(guest(0, "10.0.0.1:1"));
            assert!(hold(listener, None, &key(1), deadline, (1, 2), "", own).unwrap().is_some());
            let (stranger, host) = others.join().unwrap();
            assert!(stranger.contains("another cluster key"), "{stranger}");
            host.unwrap();
        });
        // It is named if somebody is missing in the end.
        let (listener, at, deadline) = place();
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                go(("h0".into(), at), &key(2), deadline, |_| Ok(guest(1, "10.0.0.2:1"))).map(drop)
            });
            let (soon, own) = (Instant::now() + Duration::from_millis(500), |_| Ok(guest(0, "10.0.0.1:1")));
            let error = said(&hold(listener, None, &key(1), soon, (1, 2), "", own).map(drop));
            assert!(
                error.contains("from 127.0.0.1 somebody came, but: it has another cluster key"),
                "{error}"
            );
            assert!(said(&other.join().unwrap()).contains("another cluster key"));
        });
    }

    #[test]
    fn two_guests_of_one_rank_are_named() {
        let (listener, at, deadline) = place();
        std::thread::scope(|scope| {
            let guests = ["10.0.0.2:1", "10.0.0.3:1"].map(|address| {
                let own = move |_| Ok(Guest { size: 3, ..guest(1, address) });
                scope.spawn(move || go(("h0".into(), at), &key(1), deadline, own).map(drop))
            });
            let own = |_| Ok(Guest { size: 3, ..guest(0, "10.0.0.1:1") });
            let error = said(&hold(listener, None, &key(1), deadline, (1, 3), "", own).map(drop));
            assert!(error.contains("it has rank 1, and so has h1 (10.0.0."), "{error}");
            for guest in guests {
                let heard = said(&guest.join().unwrap());
                assert!(heard.contains(&error), "{heard}");
            }
        });
    }

    #[test]
    fn a_second_process_of_rank_0_is_named_wherever_it_is() {
        let ((here, at, deadline), (there, ..)) = (place(), place());
        std::thread::scope(|scope| {
            let second = scope.spawn(move || {
                let own = |_| Ok(guest(0, "10.0.0.2:1"));
                let held = hold(there, Some(at), &key(1), deadline, (1, 2), "", own).unwrap();
                assert!(held.is_none(), "it has found the other one");
                go(("h0".into(), at), &key(1), deadline, own).map(drop)
            });
            let own = |_| Ok(guest(0, "10.0.0.1:1"));
            let error = said(&hold(here, None, &key(1), deadline, (1, 2), "", own).map(drop));
            assert!(error.contains("it has rank 0, and so has h0 (10.0.0."), "{error}");
            let heard = said(&second.join().unwrap());
            assert!(heard.contains(&error), "{heard}");
        });
    }

    #[test]
    fn a_way_to_the_meeting_place_may_lead_back() {
        let (listener, at, deadline) = place();
        std::thread::scope(|scope| {
            let host = scope.spawn(move || {
                let own = |_| Ok(guest(0, "10.0.0.1:1"));
                hold(listener, Some(at), &key(1), deadline, (1, 2), "", own).map(|held| held.is_some())
            });
            // It has looked by then, unless the machine is busy.
            std::thread::sleep(Duration::from_millis(300));
            go(("h0".into(), at), &key(1), deadline, |_| Ok(guest(1, "10.0.0.2:1"))).unwrap();
            assert!(host.join().unwrap().unwrap());
        });
    }

    #[test]
    fn strangers_are_sent_away_and_named_if_somebody_is_missing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let strangers: Vec<TcpStream> = ["GET / HTTP/1.1\r\n\r\n", "", "a b\n"]
            .map(|text| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
                stream
            })
            .into();
        drop(TcpStream::connect(at).unwrap());
        let hold = |listener: TcpListener, deadline| {
            hold(listener, None, &key(1), deadline, (1, 2), "; who?", |_| Ok(guest(0, "10.0.0.1:1")))
        };
        let deadline = Instant::now() + Duration::from_millis(500);
        let error = hold(listener, deadline).map(drop).unwrap_err().to_string();
        assert!(error.contains("of 2 ranks, only those of 1 host came"), "{error}");
        assert!(error.contains("from 127.0.0.1 somebody came, but") && error.ends_with("; who?"), "{error}");
        drop(strangers);
        let (listener, at, deadline) = place();
        std::thread::scope(|scope| {
            let come = scope.spawn(move || {
                drop(TcpStream::connect(at).unwrap());
                go(("h0".into(), at), &key(1), deadline, |_| Ok(guest(1, "10.0.0.2:1"))).map(drop)
            });
            hold(listener, deadline).map(drop).unwrap();
            come.join().unwrap().unwrap();
        });
    }
}
