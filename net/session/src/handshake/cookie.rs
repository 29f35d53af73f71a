//! Cookies: who asks for a session shows first that it is reached at its address, before anything is kept for it.
use crate::time::Time;
use ring::hmac;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A cookie holds for one to two of these.
const PERIOD: Duration = Duration::from_secs(30);

/// Makes and checks cookies; keeps nothing but one key.
pub(crate) struct Cookies {
    key: hmac::Key,
}

impl Cookies {
    pub(crate) fn new(secret: &[u8; 32]) -> Cookies {
        Cookies { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    fn period(now: Time) -> u64 {
        now.as_nanos() / PERIOD.as_nanos() as u64
    }

    fn of(&self, period: u64, from: SocketAddr, token: [u8; 8]) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&period.to_le_bytes());
        match from.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&from.port().to_le_bytes());
        context.update(&token);
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&context.sign().as_ref()[..16]);
        cookie
    }

    pub(crate) fn make(&self, now: Time, from: SocketAddr, token: [u8; 8]) -> [u8; 16] {
        self.of(Self::period(now), from, token)
    }

    pub(crate) fn is_good(&self, now: Time, from: SocketAddr, token: [u8; 8], cookie: [u8; 16]) -> bool {
        let period = Self::period(now);
        cookie == self.of(period, from, token) || (period > 0 && cookie == self.of(period - 1, from, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_holds_for_one_address_one_token_and_a_while() {
        let cookies = Cookies::new(&[3; 32]);
        let (a, b): (SocketAddr, SocketAddr) = ("10.0.0.1:5".parse().unwrap(), "10.0.0.1:6".parse().unwrap());
        let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
        let cookie = cookies.make(at(29), a, [1; 8]);
        assert!(cookies.is_good(at(29), a, [1; 8], cookie) && cookies.is_good(at(59), a, [1; 8], cookie));
        assert!(!cookies.is_good(at(60), a, [1; 8], cookie), "too old");
        assert!(!cookies.is_good(at(29), b, [1; 8], cookie), "another address");
        assert!(!cookies.is_good(at(29), a, [2; 8], cookie), "another token");
        assert!(!Cookies::new(&[4; 32]).is_good(at(29), a, [1; 8], cookie), "another host");
    }
}
