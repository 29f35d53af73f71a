//! The clocks rise with what is published, and not without it.
use super::{Scene, counter};
use crate::{AreaSpec, StallPolicy, Tracking};
use std::sync::atomic::Ordering::Relaxed;

/// The owner of one area of a group is outside, and out of the clocks as well: the other owner's writes are not
/// published, and its clock says so.
#[test]
fn clocks_wait_for_a_group_that_waits_for_an_owner() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let [mut a, b] =
        [(0, "a"), (1, "b")].map(|(rank, name)| scene.create(rank, AreaSpec::new(name).copies(2).group("g")));
    scene.workers[1].leave_clocks();
    scene.write(&mut a, 0, 1);
    scene.workers[0].tick().unwrap();
    scene.run(&[0]);
    assert_eq!((counter(&a), counter(&b), scene.lowest_clock()), (0, 0, 0));
    scene.run(&[0, 1]);
    assert_eq!((counter(&a), counter(&b), scene.lowest_clock()), (1, 0, 1));
}

/// A worker that is outside, and out of the clocks, reads the only copy.
#[test]
fn clocks_wait_for_an_area_that_a_straggler_pins() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let [mut pinned, mut free] =
        [1, 2].map(|copies| scene.create(0, AreaSpec::new(format!("{copies}")).copies(copies)));
    scene.workers[1].leave_clocks();
    scene.write(&mut pinned, 0, 1);
    scene.write(&mut free, 0, 1);
    scene.workers[0].tick().unwrap();
    assert!(scene.run(&[0]));
    assert_eq!((counter(&pinned), counter(&free), scene.lowest_clock()), (0, 1, 0));
    // Also where there is nothing else to publish.
    assert!(!scene.run(&[0]));
    assert_eq!((counter(&pinned), scene.lowest_clock()), (0, 0));
    assert!(scene.run(&[0, 1]));
    assert_eq!((counter(&pinned), scene.lowest_clock()), (1, 1));
}

#[test]
fn clocks_wait_for_what_observers_pin() {
    let mut scene = Scene::new(1, StallPolicy::Wait);
    let [mut a, mut b] = ["a", "b"].map(|name| scene.create(0, AreaSpec::new(name).group("g")));
    let (observer, area) = (scene.job.observer().unwrap(), a.area());
    let pinned = observer.read(&area).unwrap();
    scene.write(&mut a, 0, 1);
    scene.write(&mut b, 0, 1);
    scene.workers[0].tick().unwrap();
    assert!(!scene.run(&[0]));
    assert_eq!((counter(&a), counter(&b), scene.lowest_clock()), (0, 0, 0));
    drop(pinned);
    assert!(scene.run(&[0]));
    assert_eq!((counter(&a), counter(&b), scene.lowest_clock()), (1, 1, 1));
}

#[test]
fn clocks_wait_for_an_area_that_was_not_looked_through() {
    let mut scene = Scene::new(1, StallPolicy::Wait);
    let mut owned = scene.create(0, AreaSpec::new("a").tracking(Tracking::Automatic));
    scene.write(&mut owned, 0, 1);
    scene.workers[0].tick().unwrap();
    assert!(!scene.run(&[0]));
    assert_eq!((counter(&owned), scene.lowest_clock()), (0, 0));
    owned.core().slot().own.scanned.store(scene.round(), Relaxed);
    assert!(scene.run(&[0]));
    assert_eq!((counter(&owned), scene.lowest_clock()), (1, 1));
}

/// A version bears the clock at which its owner came.
#[test]
fn a_version_has_the_clock_of_its_owner() {
    let mut scene = Scene::new(2, StallPolicy::Wait);
    let mut owned = scene.create(0, AreaSpec::new("a").copies(2));
    for clock in 1..6 {
        scene.write(&mut owned, 0, clock);
        scene.workers[0].tick().unwrap();
        assert!(scene.run(&[1, 0]));
        assert_eq!(owned.area().clock(&scene.workers[1]).unwrap(), clock);
    }
    scene.workers[0].tick().unwrap();
    scene.run(&[1, 0]);
    assert_eq!(owned.area().clock(&scene.workers[1]).unwrap(), 5, "nothing was written");
}
