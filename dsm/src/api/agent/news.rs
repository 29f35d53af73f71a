//! What an agent hears: areas that came, went or were published, clocks, and names that are wanted.
use super::Agent;
use crate::engine::directory::{AreaId, CREATING, Directory, state_of};
use crate::protocol::outlet;
use crate::protocol::publication::Version;
use crate::segment::layout::bits;
use crate::segment::parts::Parts;
use std::sync::atomic::Ordering;

/// Something that the agent has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// There is an area: [`Agent::describe`].
    Created {
        /// The area.
        area: AreaId,
    },
    /// The area was deleted.
    Deleted {
        /// The area.
        area: AreaId,
    },
    /// An area has a newer version. Several that followed each other are one event, of the last. Of an area that is received
    /// into, the round is past that published it: [`Agent::receive`] may go on.
    Published {
        /// The area.
        area: AreaId,
        /// The newest version.
        version: Version,
    },
    /// Somebody waits for an area of a name that no area here has. Heard again while somebody waits.
    Wanted {
        /// The name.
        name: String,
    },
    /// The lowest clock that all workers of this host have reached, by [`Worker::tick`](crate::Worker::tick). Comes after
    /// the events of all that it covers.
    Clock {
        /// The clock.
        clock: u64,
    },
}

/// What was told of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    area: Option<AreaId>,
    version: Version,
}

impl Agent {
    /// Adds to `events` all that is new since the last look.
    pub fn look(&mut self, events: &mut Vec<Event>) {
        let shared = self.desk.shared.clone();
        let segment = &shared.segment;
        self.heard = self.desk.outlet().listen();
        // Acquire: pairs with the release in `publish_plan`. The news that are taken below are of all that it covers.
        let clock = segment.header().sync.acting.lowest_clock.load(Ordering::Acquire);
        let used = segment.used_areas();
        let looked_everywhere = self.known.len();
        self.known.resize(used.max(looked_everywhere), Known::default());
        for index in std::mem::take(&mut self.again) {
            self.look_at(index, events);
        }
        for (word, marks) in segment.marks()[..used.div_ceil(64)].iter().enumerate() {
            let news = outlet::take_news(&marks.news);
            // Slots that this agent has not seen are looked at once without news.
            let fresh = (0..64).filter(|bit| (looked_everywhere..used).contains(&(word * 64 + bit)));
            let all = fresh.fold(news, |all, bit| all | 1 << bit);
            for index in bits(all).map(|bit| word * 64 + bit).filter(|index| *index < used) {
                self.look_at(index, events);
            }
        }
        self.look_for_wanted(events);
        if self.again.is_empty() && clock != self.clock {
            self.clock = clock;
            events.push(Event::Clock { clock });
        }
    }

    fn look_at(&mut self, index: usize, events: &mut Vec<Event>) {
        let segment = &self.desk.shared.segment;
        let slot = &segment.areas()[index];
        let found = AreaId::of(index, &slot.read.state);
        let known = &mut self.known[index];
        if let Some(area) = known.area
            && found != Some(area)
        {
            *known = Known::default();
            events.push(Event::Deleted { area });
        }
        let Some(area) = found else {
            if state_of(slot) == CREATING {
                self.again.push(index);
            }
            return;
        };
        if known.area.is_none() {
            known.area = Some(area);
            events.push(Event::Created { area });
        }
        // In use, so that its memory stays what it is.
        if self.desk.hold(area).is_err() {
            return self.again.push(index);
        }
        let parts = Parts::of(segment, index);
        let version =
            if parts.layout.copies == 0 { Some(known.version) } else { parts.reader_copies().version() };
        let may_receive = self.desk.is_free_of(area, version);
        self.desk.release(area);
        match version {
            // It is being published.
            None => self.again.push(index),
            // The area cannot be received into yet.
            Some(version) if version > known.version && !may_receive => self.again.push(index),
            Some(version) if version > known.version => {
                known.version = version;
                events.push(Event::Published { area, version });
            }
            Some(_) => {}
        }
    }

    fn look_for_wanted(&self, events: &mut Vec<Event>) {
        let shared = &self.desk.shared;
        if shared.segment.header().wanted.load(Ordering::Relaxed) == 0 {
            return;
        }
        // If somebody else has the directory, whoever waits asks again.
        if let Some(directory) = Directory::try_lock(shared) {
            events.extend(directory.take_wanted().into_iter().map(|name| Event::Wanted { name }));
        }
    }
}
