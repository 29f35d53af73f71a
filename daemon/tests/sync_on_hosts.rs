//! A worker asks again and again for what another host's owner has, who waits in a barrier meanwhile: it is answered each time, at once.
use crate::common::cluster::{join, run_on_each};
use crate::common::role_here;
use hectare_dsm::{Error, Worker};

const ROLE: &str = "SYNC_ROLE";
const AREAS: u64 = 150;

fn ask(worker: &mut Worker) -> Result<(), Error> {
    let mut owned = Vec::new();
    for value in 0..AREAS {
        let name = format!("asked/{value}");
        if worker.rank() == 0 {
            let mut area = worker.create::<u64>(&*name, 10)?;
            area.write(worker)?.fill(value);
            owned.push(area);
        }
        worker.barrier()?;
        if worker.rank() == 1 {
            let area = worker.attach::<u64>(&name)?;
            worker.sync_area(&area)?;
            assert_eq!(area.read(worker)?, [value; 10]);
        }
        worker.barrier()?;
    }
    Ok(())
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        ask(&mut join(2).1).unwrap();
        println!("all answered");
    }
}

#[test]
fn whoever_asks_for_what_is_clean_is_answered() {
    run_on_each(2, &role_here(), ROLE, "all answered");
}
