//! A line in the log when datagrams are thrown away that no agent of the job has sent. Without it, only counters would show them.
use hectare_session::Time;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::warn;

/// Between two lines.
const PERIOD: Duration = Duration::from_secs(60);

/// Datagrams that were thrown away.
#[derive(Debug, Default)]
pub(crate) struct Thrown {
    /// How many there were when this looked last, and when it said so last.
    counted: u64,
    told: Option<(u64, Time)>,
}

impl Thrown {
    /// After a datagram from `from` of which nothing came: there are so many by now. Says so, unless it has a moment ago.
    pub(crate) fn look(&mut self, now: Time, from: SocketAddr, count: u64) {
        if let Some(count) = self.news(now, count) {
            warn!(
                %from,
                count,
                "datagrams were thrown away that no agent of this job has sent so: a stranger sends to its port, or a link damages them"
            );
        }
    }

    /// How many were not told of, if this one is one of them and it is time to tell.
    fn news(&mut self, now: Time, count: u64) -> Option<u64> {
        if std::mem::replace(&mut self.counted, count) == count {
            return None;
        }
        let before = match self.told {
            Some((_, when)) if now.since(when) < PERIOD => return None,
            told => told.map_or(0, |(before, _)| before),
        };
        self.told = Some((count, now));
        Some(count - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_then_how_many_came_in_a_minute() {
        let mut thrown = Thrown::default();
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
        // Acknowledgements, for example, are not thrown away.
        assert_eq!(thrown.news(at(0), 0), None);
        assert_eq!(thrown.news(at(1), 1), Some(1));
        assert_eq!(thrown.news(at(2), 2), None);
        assert_eq!(thrown.news(at(60), 3), None);
        assert_eq!(thrown.news(at(61), 3), None);
        assert_eq!(thrown.news(at(62), 4), Some(3));
        assert_eq!(thrown.news(at(63), 5), None);
    }
}
