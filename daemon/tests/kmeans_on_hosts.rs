//! k-means by reducers, a program that knows nothing of hosts: three ranks on one host, and on three, have the same bits.
use crate::common::cluster::Cluster;
use crate::common::role_here;
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Job, Rank, Reducer, Result, Worker};

const ROLE: &str = "KMEANS_ROLE";
const RANKS: Rank = 3;
const POINTS: usize = 600;
const DIMENSIONS: usize = 8;
const CLUSTERS: usize = 5;
const ITERATIONS: usize = 25;

/// A point of this rank: near one of five corners.
fn point(rank: Rank, index: usize) -> [f64; DIMENSIONS] {
    let corner = (index + rank as usize) % CLUSTERS;
    let mut state = ((rank as u64) << 32 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::array::from_fn(|at| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let noise = (state >> 11) as f64 / (1u64 << 53) as f64;
        if at == corner { 3.0 + noise } else { 1.5 * noise }
    })
}

fn nearest(point: &[f64; DIMENSIONS], centers: &[f64]) -> usize {
    let distance = |center: &[f64]| point.iter().zip(center).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let all = centers.chunks_exact(DIMENSIONS).map(distance).enumerate();
    all.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are centers").0
}

/// Sums of the points of each cluster and how many there are, in an area of each rank; the reducer adds them. The bits of the
/// centers, and how many points of this rank changed their cluster in the last iteration.
fn train(worker: &mut Worker) -> Result<(Vec<u64>, usize)> {
    let rank = worker.rank();
    let width = DIMENSIONS + 1;
    let points: Vec<_> = (0..POINTS).map(|index| point(rank, index)).collect();
    let mut mine =
        worker.create::<f64>(AreaSpec::new(format!("sums/{rank}")).row(width), CLUSTERS * width)?;
    worker.barrier()?;
    let inputs: Result<Vec<_>> =
        (0..RANKS).map(|rank| worker.attach::<f64>(&format!("sums/{rank}"))).collect();
    let members: Vec<Rank> = (0..RANKS).collect();
    let mut sums = Reducer::new(worker, "sums/all", &members, inputs?)?;
    let mut centers: Vec<f64> = (0..CLUSTERS).flat_map(|index| point(0, index)).collect();
    let mut clusters = vec![0; POINTS];
    let mut moved = 0;
    for _ in 0..ITERATIONS {
        let mut own = vec![0.0; CLUSTERS * width];
        moved = 0;
        for (point, cluster) in points.iter().zip(&mut clusters) {
            let found = nearest(point, &centers);
            moved += usize::from(found != *cluster);
            *cluster = found;
            let row = &mut own[found * width..][..width];
            row.iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
            row[DIMENSIONS] += 1.0;
        }
        mine.write(worker)?.as_mut_slice().copy_from_slice(&own);
        sums.sum(worker)?;
        let mut all = vec![0.0; own.len()];
        sums.copy_to(worker, &mut all)?;
        for (center, row) in centers.chunks_exact_mut(DIMENSIONS).zip(all.chunks_exact(width)) {
            let count = row[DIMENSIONS];
            if count > 0.0 {
                center.iter_mut().zip(row).for_each(|(center, sum)| *center = sum / count);
            }
        }
    }
    Ok((centers.iter().map(|value| value.to_bits()).collect(), moved))
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        let launch = Launch::from_environment().unwrap().expect("a launcher");
        let mut worker = Job::connect(&launch.job).unwrap().worker().unwrap();
        worker.wait_for_workers(launch.size as usize, std::time::Duration::from_secs(60)).unwrap();
        println!("centers {:x?}", train(&mut worker).unwrap().0);
    }
}

#[test]
fn three_hosts_have_the_centers_of_one() {
    let on_threads = Job::embedded().unwrap().run(RANKS as usize, |worker| train(worker).unwrap()).unwrap();
    let (centers, moved) = &on_threads[0];
    assert!(on_threads.iter().all(|(other, _)| other == centers), "one host, and not the same centers");
    assert!(*moved == 0 && centers.iter().all(|bits| f64::from_bits(*bits).is_finite()), "{moved} moved");
    let role = format!(
        "{ROLE}=1 exec {} --exact {} --nocapture",
        std::env::current_exe().unwrap().display(),
        role_here()
    );
    let Some(cluster) = Cluster::new(RANKS as usize) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &role);
    assert_eq!(said.code, 0, "{said:?}");
    let line = format!("centers {centers:x?}");
    assert_eq!(said.out.matches(&line).count(), RANKS as usize, "{line}\n{}", said.out);
    cluster.assert_nothing_is_left();
}
