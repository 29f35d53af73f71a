//! Memory of this host that is registered with the device: writer copies that peers write, and reader copies whose lines are written to
//! peers.
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, Held};
use hectare_net::{HostId, Place};
use hectare_rdma::{Domain, Error, Region};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Registered memory, by its area. A registration ends when it is forgotten, and when another host's is made.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Writer copies, and the one host that may write each.
    written: HashMap<dsm::AreaId, (HostId, Region)>,
    /// Published copies, by the host that is sent to and where they begin.
    sent: HashMap<dsm::AreaId, BTreeMap<(HostId, usize), Rc<Region>>>,
}

/// Why memory is not registered.
#[derive(Debug)]
pub(super) enum NoRegion {
    /// The area is gone, or is not one of another host any more.
    Area,
    /// The device refuses.
    Device(Error),
}

impl Places {
    /// Where `peer` may write an area, from now on it alone.
    pub(super) fn writer(
        &mut self,
        agent: &Agent,
        (peer, domain): (HostId, &Domain),
        area: dsm::AreaId,
    ) -> Result<Place, NoRegion> {
        if self.written.get(&area).is_none_or(|(host, _)| *host != peer) {
            self.written.remove(&area);
            let exposed = agent.expose(area).map_err(|_| NoRegion::Area)?;
            let region = Region::of_writer(domain, exposed).map_err(NoRegion::Device)?;
            self.written.insert(area, (peer, region));
        }
        let place = self.written[&area].1.place();
        Ok(Place { address: place.address, key: place.key })
    }

    /// The registered memory of a copy that is held.
    pub(super) fn copy(
        &mut self,
        (peer, domain): (HostId, &Domain),
        held: &Held,
    ) -> Result<Rc<Region>, NoRegion> {
        let key = (peer, held.bytes().as_ptr() as usize);
        let of_area = self.sent.entry(held.area()).or_default();
        if let Some(region) = of_area.get(&key) {
            return Ok(region.clone());
        }
        let exposed = held.expose().map_err(|_| NoRegion::Area)?;
        let region = Rc::new(Region::of_copy(domain, exposed).map_err(NoRegion::Device)?);
        of_area.insert(key, region.clone());
        Ok(region)
    }

    /// An area is gone, or changes hands.
    pub(super) fn forget(&mut self, area: dsm::AreaId) {
        self.written.remove(&area);
        self.sent.remove(&area);
    }

    /// A peer is sent nothing of an area any more. What is under way keeps what it is of.
    pub(super) fn forget_sent(&mut self, peer: HostId, area: dsm::AreaId) {
        if let Some(of_area) = self.sent.get_mut(&area) {
            of_area.retain(|(host, _), _| *host != peer);
            if of_area.is_empty() {
                self.sent.remove(&area);
            }
        }
    }

    /// How many registrations there are.
    pub(super) fn count(&self) -> usize {
        self.written.len() + self.sent.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Ends all that a peer may write, and is sent.
    pub(super) fn forget_peer(&mut self, peer: HostId) {
        self.written.retain(|_, (host, _)| *host != peer);
        self.sent.retain(|_, of_area| {
            of_area.retain(|(host, _), _| *host != peer);
            !of_area.is_empty()
        });
    }
}
