//! Areas of a group that were looked for before they were there: after the barrier that follows their creation, a worker of another host
//! sees all that was written, of every member.
use crate::common::cluster::{join, run_on_each};
use crate::common::role_here;
use hectare_dsm::{AreaSpec, Error, Worker};

const ROLE: &str = "GROUPS_ROLE";
const GROUPS: u64 = 60;
/// The last member is long on its way.
const LENGTHS: [usize; 2] = [100, 40_000];

fn look_early(worker: &mut Worker) -> Result<(), Error> {
    let mut owned = Vec::new();
    for group in 0..GROUPS {
        let names = [0, 1].map(|member| format!("{group}/{member}"));
        for name in &names {
            let early = worker.attach::<u64>(name).map(drop).unwrap_err();
            assert!(matches!(early, Error::NoSuchArea { .. }), "{early}");
        }
        worker.barrier()?;
        if worker.rank() == 0 {
            for (name, len) in names.iter().zip(LENGTHS) {
                let spec = AreaSpec::new(name.clone()).group(format!("group {group}"));
                let mut area = worker.create::<u64>(spec, len)?;
                area.write(worker)?.fill(group + 1);
                owned.push(area);
            }
        }
        worker.barrier()?;
        for (name, len) in names.iter().zip(LENGTHS) {
            let area = worker.attach::<u64>(name)?;
            let seen = area.read(worker)?;
            assert!(seen.len() == len && seen.iter().all(|value| *value == group + 1), "{name}: {}", seen[0]);
        }
        worker.barrier()?;
    }
    Ok(())
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        look_early(&mut join(2).1).unwrap();
        println!("all seen");
    }
}

#[test]
fn who_looked_for_a_group_too_early_sees_all_of_it_after_the_barrier() {
    run_on_each(2, &role_here(), ROLE, "all seen");
}
