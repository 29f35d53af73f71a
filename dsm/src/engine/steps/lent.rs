//! Areas that their owners have lent, while rounds publish them.
use super::{Scene, counter};
use crate::agent::{Agent, Published};
use crate::{AreaSpec, Job, Lent, StallPolicy};

/// Two workers of the first of two hosts, and its agent.
fn on_two_hosts() -> (Scene, Agent) {
    let mut scene = Scene::new(0, StallPolicy::Wait);
    scene.job = Job::builder().reserve(1 << 28).hosts(&[2, 1], 0).embedded().unwrap();
    scene.workers = (0..2).map(|_| scene.job.worker().unwrap()).collect();
    let agent = scene.job.agent().unwrap();
    (scene, agent)
}

impl Scene {
    /// An area of worker 0 that has written it and lent it.
    fn lend(&mut self, name: &str) -> Lent<u64> {
        let mut owned = self.create(0, AreaSpec::new(name).copies(2).on_demand());
        self.write(&mut owned, 0, 7);
        owned.lend(&self.workers[0]).unwrap()
    }
}

/// Rounds that wait for nobody say nothing of an owner that was not in them.
#[test]
fn an_owner_is_waited_for_beside_rounds_that_wait_for_nobody() {
    let (mut scene, agent) = on_two_hosts();
    let mut owned = scene.create(1, AreaSpec::new("held"));
    scene.write(&mut owned, 1, 7);
    let lent: Vec<_> = (0..5).map(|at| scene.lend(&format!("lent/{at}"))).collect();
    let forced = agent.force(agent.find("held").unwrap()).unwrap();
    assert!(scene.job.shared.segment.header().sync.take_request(), "a worker comes to open the round");
    for lent in &lent {
        assert_eq!(agent.publish_lent(agent.find(lent.area().name()).unwrap()), Some(Published::All));
        assert_eq!(agent.published(&forced), None);
        scene.job.shared.segment.header().sync.take_request();
    }
    scene.run(&[1, 0]);
    assert_eq!((agent.published(&forced), counter(&owned)), (Some(Published::All), 1));
}
