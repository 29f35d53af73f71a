//! The specification of an area.
use crate::error::{Error, Result};
use std::time::Duration;

/// How the runtime learns what the owner wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// The write guard and [`Owned::log`](crate::Owned::log) mark writes. The default.
    #[default]
    Logged,
    /// Nothing is marked: every publication copies the whole area. For small areas that change as a whole.
    Whole,
    /// The runtime detects writes by page protection (asynchronous userfaultfd write protection, Linux 6.7), or on older
    /// kernels by comparing the area with its newest reader copy at every publication. For code that cannot be changed.
    Automatic,
}

/// The description of an area to create.
///
/// ```
/// use hectare_dsm::AreaSpec;
/// use std::time::Duration;
/// let spec = AreaSpec::new("model/users").copies(2).interval(Duration::from_millis(10)).row(32);
/// # let _ = spec;
/// ```
#[derive(Clone, Debug)]
pub struct AreaSpec {
    pub(crate) name: String,
    pub(crate) group: Option<String>,
    pub(crate) copies: u32,
    pub(crate) tracking: Tracking,
    pub(crate) interval: Option<Duration>,
    pub(crate) external_interval: Option<Duration>,
    pub(crate) on_demand: bool,
    pub(crate) row: usize,
}

impl AreaSpec {
    /// An area of this name, with one reader copy, a log, no interval and rows of one element.
    ///
    /// A name is a `/`-separated path of non-empty parts, such as `model/users`.
    pub fn new(name: impl Into<String>) -> AreaSpec {
        AreaSpec {
            name: name.into(),
            group: None,
            copies: 1,
            tracking: Tracking::Logged,
            interval: None,
            external_interval: None,
            on_demand: false,
            row: 1,
        }
    }

    /// How many reader copies the area has. 0: it is never published, only handed over. 1: enough while
    /// every worker comes to every round. 2 and more: stragglers and observers keep reading an old version
    /// while new ones are published.
    pub fn copies(mut self, copies: u32) -> AreaSpec {
        self.copies = copies;
        self
    }

    /// How the runtime learns what was written.
    pub fn tracking(mut self, tracking: Tracking) -> AreaSpec {
        self.tracking = tracking;
        self
    }

    /// Publishes the area at this interval, if it changed; without one it is published only on demand.
    pub fn interval(mut self, interval: Duration) -> AreaSpec {
        self.interval = Some(interval);
        self
    }

    /// Leaves at least this long between versions that go to another host; without it, each goes as soon as the last
    /// one has come. A version before a clock ([`Worker::tick`](crate::Worker::tick), a barrier) goes at once, and
    /// one that is asked for ([`Worker::sync_area`](crate::Worker::sync_area)): so this saves bytes where an area is
    /// published more often than others need it. Of a group, the shortest counts, which is none if an area of it has
    /// none.
    ///
    /// ```
    /// # use hectare_dsm::AreaSpec;
    /// # use std::time::Duration;
    /// let spec = AreaSpec::new("model").copies(3).external_interval(Duration::from_millis(50));
    /// # let _ = spec;
    /// ```
    pub fn external_interval(mut self, interval: Duration) -> AreaSpec {
        self.external_interval = Some(interval);
        self
    }

    /// Sends versions to another host only when a worker there asks ([`Area::ask`](crate::Area::ask),
    /// [`Worker::sync_area`](crate::Worker::sync_area)), which brings what is published at the owner's host, or when the area is
    /// given to one: then to that host alone. Until then readers there see an older version, zeros at first, and clocks do not
    /// cover the area. For what few of those who could read it do read.
    ///
    /// ```
    /// # use hectare_dsm::AreaSpec;
    /// let spec = AreaSpec::new("part/3").on_demand();
    /// # let _ = spec;
    /// ```
    pub fn on_demand(mut self) -> AreaSpec {
        self.on_demand = true;
        self
    }

    /// Publishes the area in the same rounds as the others of this group, so that reading them together
    /// gives one consistent state: that of a moment at which all their living owners stood at a
    /// synchronization point. While one of them does not come, none is published. An area whose owner has
    /// died, or has dropped it, stays at its last version until somebody claims it; the others go on.
    pub fn group(mut self, group: impl Into<String>) -> AreaSpec {
        self.group = Some(group.into());
        self
    }

    /// Elements per row, for [`WriteGuard::row_mut`](crate::WriteGuard::row_mut) and
    /// [`Area::row`](crate::Area::row).
    pub fn row(mut self, elements: usize) -> AreaSpec {
        self.row = elements;
        self
    }

    pub(crate) fn check(&self, max_name_bytes: usize) -> Result<()> {
        check_name(&self.name, max_name_bytes)?;
        if let Some(group) = &self.group {
            check_name(group, max_name_bytes)?;
        }
        let bad = |what: String| Err(Error::InvalidArea { name: self.name.clone(), what });
        if self.copies > 64 {
            return bad(format!("{} reader copies asked for, at most 64 are possible", self.copies));
        }
        if self.interval == Some(Duration::ZERO) {
            return bad("an interval of zero: force a sync, or leave the interval out".into());
        }
        if self.external_interval == Some(Duration::ZERO) {
            return bad("an interval of zero between versions for other hosts: leave the interval out".into());
        }
        if (self.interval.is_some() || self.external_interval.is_some()) && self.copies == 0 {
            return bad("an interval without a reader copy to publish into".into());
        }
        if self.group.is_some() && self.copies == 0 {
            return bad("a group without a reader copy to publish into".into());
        }
        if self.on_demand && (self.group.is_some() || self.copies == 0) {
            return bad("sent on demand, but in a group or without a reader copy".into());
        }
        if self.row == 0 || u32::try_from(self.row).is_err() {
            return bad(format!("rows of {} elements", self.row));
        }
        Ok(())
    }
}

impl From<&str> for AreaSpec {
    fn from(name: &str) -> AreaSpec {
        AreaSpec::new(name)
    }
}

/// So that `&format!(...)` is a name, too.
impl From<&String> for AreaSpec {
    fn from(name: &String) -> AreaSpec {
        AreaSpec::new(name)
    }
}

impl From<String> for AreaSpec {
    fn from(name: String) -> AreaSpec {
        AreaSpec::new(name)
    }
}

pub(crate) fn check_name(name: &str, max_bytes: usize) -> Result<()> {
    let bad = |why: String| Err(Error::InvalidName { name: name.chars().take(80).collect(), why });
    if name.is_empty() {
        return bad("it is empty".into());
    }
    if name.len() > max_bytes {
        return bad(format!("{} bytes, the limit is {max_bytes} (`max_name_bytes` of the job)", name.len()));
    }
    if name.split('/').any(|part| part.is_empty()) {
        return bad("a part between slashes is empty".into());
    }
    if name.chars().any(char::is_control) {
        return bad("it has a control character".into());
    }
    Ok(())
}
