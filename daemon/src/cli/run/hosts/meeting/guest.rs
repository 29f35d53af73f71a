//! A host that comes to the meeting place.
use super::line::{line, nonce_of, receive, send};
use super::{AGAIN, Agreed, Guest, LINE_WITHIN, Made, hmac_key};
use crate::cli::failure::HostFailed;
use crate::cli::output::one_line;
use anyhow::{Context, Result, bail};
use hectare_session::ClusterKey;
use ring::hmac;
use std::io::BufReader;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The connection of a host that has heard the agreement.
pub(in super::super) struct Attendance {
    place: (String, SocketAddr),
    key: hmac::Key,
    to: TcpStream,
    from: BufReader<TcpStream>,
    /// The random bytes of the meeting place, and those of this host.
    nonces: [[u8; 32]; 2],
    deadline: Instant,
}

/// The failure of the meeting place.
fn failed(place: &(String, SocketAddr), what: String) -> HostFailed {
    HostFailed::new(format!("{} ({})", place.0, place.1), what)
}

/// Goes to the meeting place as a host whose agent will be at the address that `guest` gives, by the address of this host on the
/// way there.
pub(in super::super) fn go(
    place: (String, SocketAddr),
    key: &ClusterKey,
    deadline: Instant,
    guest: impl FnOnce(IpAddr) -> Result<Guest>,
) -> Result<(Agreed, Attendance)> {
    let key = hmac_key(key);
    let mut to = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&place.1, left.max(Duration::from_millis(1))) {
            Ok(stream) => break stream,
            Err(error) if left.is_zero() => {
                let what = format!("the process of rank 0 does not answer there: {error}");
                return Err(failed(&place, what).into());
            }
            Err(_) => std::thread::sleep(AGAIN),
        }
    };
    let own = to.local_addr().context("getsockname")?.ip();
    let talk = || -> Result<_> {
        to.set_read_timeout(Some(LINE_WITHIN))?;
        let mut from = BufReader::new(to.try_clone()?);
        let greeting = line(&mut from)?;
        let theirs =
            nonce_of(&greeting).with_context(|| format!("it speaks another protocol: {greeting:.60}"))?;
        let guest = guest(own)?;
        send(&mut to, &key, "guest", &theirs, &guest)?;
        // The others may be late.
        to.set_read_timeout(Some(deadline.saturating_duration_since(Instant::now()) + LINE_WITHIN))?;
        let agreed: Agreed = receive(&mut from, &key, "host", &guest.nonce)?;
        Ok((agreed, from, [theirs, guest.nonce]))
    };
    let (agreed, from, nonces) = talk().map_err(|error| failed(&place, one_line(&error)))?;
    match agreed.refused {
        Some(what) => bail!(failed(&place, what)),
        None => Ok((agreed, Attendance { place, key, to, from, nonces, deadline })),
    }
}

impl Attendance {
    /// Says whether this host has made its part of the job, and waits until all have.
    ///
    /// # Errors
    /// That this host could not, or that another one could not.
    pub(in super::super) fn conclude(mut self, own: &str, made: Result<()>) -> Result<()> {
        let [theirs, ours] = self.nonces;
        let sent = send(&mut self.to, &self.key, "guest made", &theirs, &Made::of(own, &made));
        made?;
        let answer = || -> Result<Made> {
            sent?;
            let left = self.deadline.saturating_duration_since(Instant::now());
            self.to.set_read_timeout(Some(left + LINE_WITHIN))?;
            Ok(receive(&mut self.from, &self.key, "host made", &ours)?)
        };
        answer().map_err(|error| failed(&self.place, one_line(&error)))?.check()
    }
}
