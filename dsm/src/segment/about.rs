//! The properties of an area: its creator writes them into its slot, and everybody else reads them there.
use super::element::ElementType;
use super::layout::AboutLines;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bit of `AboutLines::flags`: the owner looks the area through before a round.
const AUTOMATIC: u32 = 1;
/// Another: other hosts are sent what they ask for.
const ON_DEMAND: u32 = 2;

/// The properties that do not change while an area lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) element: ElementType,
    /// Elements.
    pub(crate) len: usize,
    /// Elements of a row, at least 1.
    pub(crate) row: usize,
    /// Reader copies.
    pub(crate) copies: u32,
    /// [`Tracking::Automatic`](crate::Tracking::Automatic).
    pub(crate) automatic: bool,
    pub(crate) interval: Option<Duration>,
    /// Between publications that go to other hosts.
    pub(crate) external_interval: Option<Duration>,
    /// [`AreaSpec::on_demand`](crate::AreaSpec::on_demand).
    pub(crate) on_demand: bool,
}

impl About {
    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> u64 {
        (self.len as u64).saturating_mul(self.element.size.into())
    }
}

// Relaxed, all of it: the slot's state orders what its creator wrote.
impl AboutLines {
    /// Reads it. Mixed, unless the caller finds the slot unchanged afterwards.
    pub(crate) fn about(&self) -> About {
        let (small, large) = (
            |word: &AtomicU32| word.load(Ordering::Relaxed),
            |word: &AtomicU64| word.load(Ordering::Relaxed),
        );
        let interval = |word| Some(large(word)).filter(|ns| *ns != 0).map(Duration::from_nanos);
        About {
            element: ElementType {
                size: small(&self.elem_size),
                align: small(&self.elem_align),
                kind: small(&self.elem_kind),
            },
            len: large(&self.len) as usize,
            row: small(&self.row_len).max(1) as usize,
            copies: small(&self.copies),
            automatic: self.is_automatic(),
            interval: interval(&self.interval_ns),
            external_interval: interval(&self.external_interval_ns),
            on_demand: self.flags.load(Ordering::Relaxed) & ON_DEMAND != 0,
        }
    }

    /// Writes it; the caller is creating the area.
    pub(crate) fn describe(&self, about: &About) {
        let small = |word: &AtomicU32, value: u32| word.store(value, Ordering::Relaxed);
        let large = |word: &AtomicU64, value: u64| word.store(value, Ordering::Relaxed);
        small(&self.elem_size, about.element.size);
        small(&self.elem_align, about.element.align);
        small(&self.elem_kind, about.element.kind);
        large(&self.len, about.len as u64);
        small(&self.row_len, about.row as u32);
        small(&self.copies, about.copies);
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        small(&self.flags, flag(about.automatic, AUTOMATIC) | flag(about.on_demand, ON_DEMAND));
        for (word, interval) in
            [(&self.interval_ns, about.interval), (&self.external_interval_ns, about.external_interval)]
        {
            large(word, interval.map_or(0, crate::memory::clock::nanos));
        }
    }

    pub(crate) fn is_automatic(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & AUTOMATIC != 0
    }
}
