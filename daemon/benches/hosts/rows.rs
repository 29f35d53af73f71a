//! Matrix factorization in conflict-free batches, by two workers: item rows change owners from batch to batch, in place, or go through
//! areas that are published after each batch; on two hosts, and as two processes of one.
use super::{Cluster, best, figure, in_role, median};
use crate::support::{LONG, worker};
use hectare_dsm::tasks::{RowList, RowPlan, RowRun, Touched};
use hectare_dsm::{Area, AreaSpec, Owned, Result, Worker};
use std::sync::Arc;
use std::time::Instant;

const USERS: usize = 6040;
const ITEMS: usize = 3706;
const RANK: usize = 100;
const BATCHES: usize = 50;
const PASSES: usize = 12;
const WARM: usize = 2;
/// Ratings that a worker learns from in a batch.
const SHARE: usize = 1000;
const ROUNDS: usize = 5;

fn mixed(number: usize) -> usize {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
}

/// The worker that has an item in a batch: half of them go to the other from one batch to the next.
fn owner(item: usize, batch: usize) -> usize {
    mixed(item * BATCHES + batch) % 2
}

/// The ratings from which a worker learns in a batch: of users that it alone has, and of items that are its own in the batch.
fn share(rank: usize, batch: usize) -> Vec<(usize, usize)> {
    let mine: Vec<usize> = (0..ITEMS).filter(|item| owner(*item, batch) == rank).collect();
    let rating = |at: usize| {
        let number = (batch * 2 + rank) * SHARE + at;
        (mixed(number) % (USERS / 2) * 2 + rank, mine[mixed(number + 1_000_000) % mine.len()])
    };
    (0..SHARE).map(rating).collect()
}

fn learn(user: &mut [f32], item: &mut [f32]) {
    let error = 3.0 - user.iter().zip(&*item).map(|(u, i)| u * i).sum::<f32>();
    for (u, i) in user.iter_mut().zip(item) {
        let (du, di) = (error * *i - 0.05 * *u, error * *u - 0.05 * *i);
        *u += 0.005 * du;
        *i += 0.005 * di;
    }
}

fn initial(at: usize) -> f32 {
    (mixed(at) % 1000) as f32 / 10_000.0
}

/// Rows of users that this worker alone has, by their numbers divided by two.
fn users() -> Vec<f32> {
    (0..USERS / 2 * RANK).map(initial).collect()
}

fn rows_of(users: &mut [f32], user: usize) -> &mut [f32] {
    &mut users[user / 2 * RANK..][..RANK]
}

/// The distinct items of a share.
fn items(share: &[(usize, usize)]) -> Vec<u32> {
    let mut items: Vec<u32> = share.iter().map(|(_, item)| *item as u32).collect();
    items.sort_unstable();
    items.dedup();
    items
}

fn shares(rank: usize) -> Vec<Vec<(usize, usize)>> {
    (0..BATCHES).map(|batch| share(rank, batch)).collect()
}

/// Seconds per batch.
fn in_place(worker: &mut Worker) -> Result<f64> {
    let rank = worker.rank() as usize;
    let lists = |rank: usize| shares(rank).iter().map(|share| items(share)).collect::<RowList>();
    let touched = |rank| vec![Touched { writes: lists(rank), reads: RowList::default() }];
    let plan = RowPlan::new(vec![ITEMS], BATCHES, vec![touched(0), touched(1)]).expect("a plan");
    let mut opened = None;
    if rank == 0 {
        let mut owned = worker.create::<f32>(AreaSpec::new("items").on_demand(), ITEMS * RANK)?;
        let all = owned.write_whole(worker)?;
        all.iter_mut().enumerate().for_each(|(at, element)| *element = initial(at));
        worker.sync()?;
        opened = Some(owned.open_to_tasks(worker)?);
    }
    let area = worker.attach_within::<f32>("items", LONG)?;
    worker.barrier()?;
    let (mut users, mine) = (users(), shares(rank));
    let places: Vec<Vec<usize>> = mine
        .iter()
        .map(|share| {
            let items = items(share);
            let place = |(_, item): &(usize, usize)| items.binary_search(&(*item as u32)).expect("an item");
            share.iter().map(place).collect()
        })
        .collect();
    let mut run = RowRun::begin(worker, Arc::new(plan), PASSES, &[area.in_place()])?;
    worker.barrier()?;
    let mut since = Instant::now();
    while let Some(batch) = run.next(worker)? {
        if (batch.pass(), batch.number()) == (WARM, 0) {
            since = Instant::now();
        }
        let (number, mut rows) = (batch.number(), batch.rows(&area, 0)?);
        for ((user, _), place) in mine[number].iter().zip(&places[number]) {
            learn(rows_of(&mut users, *user), rows.get_mut(*place).expect("a row of the batch"));
        }
    }
    let seconds = since.elapsed().as_secs_f64();
    let ended = run.end(worker)?;
    worker.barrier()?;
    ended.check_done()?;
    drop(opened);
    worker.barrier()?;
    Ok(seconds / ((PASSES - WARM) * BATCHES) as f64)
}

/// Copies what the other has written last of items that this worker has in a batch.
fn fetch(
    worker: &Worker,
    mine: &mut Owned<f32>,
    theirs: &Area<f32>,
    items: &[u32],
    last: &[u8],
) -> Result<()> {
    let (rank, seen) = (worker.rank() as u8, theirs.read(worker)?);
    let mut rows = mine.write(worker)?;
    for item in items.iter().map(|item| *item as usize).filter(|item| last[*item] == 1 - rank) {
        rows.row_mut(item).copy_from_slice(&seen[item * RANK..][..RANK]);
    }
    Ok(())
}

/// The same, with a copy of the items by each worker, which is published after each batch.
fn published(worker: &mut Worker) -> Result<f64> {
    let rank = worker.rank() as usize;
    let name = |rank: usize| format!("items/{rank}");
    let mut mine = worker.create::<f32>(AreaSpec::new(name(rank)).row(RANK), ITEMS * RANK)?;
    mine.write_whole(worker)?.iter_mut().enumerate().for_each(|(at, element)| *element = initial(at));
    let theirs = worker.attach_within::<f32>(&name(1 - rank), LONG)?;
    worker.barrier()?;
    let (mut users, shares) = (users(), [shares(0), shares(1)]);
    let lists = shares.each_ref().map(|shares| shares.iter().map(|share| items(share)).collect::<Vec<_>>());
    let (mut last, mut since) = (vec![2u8; ITEMS], Instant::now());
    for turn in 0..PASSES * BATCHES {
        let batch = turn % BATCHES;
        if turn == WARM * BATCHES {
            since = Instant::now();
        }
        fetch(worker, &mut mine, &theirs, &lists[rank][batch], &last)?;
        let mut rows = mine.write(worker)?;
        for (user, item) in &shares[rank][batch] {
            learn(rows_of(&mut users, *user), rows.row_mut(*item));
        }
        for (writer, lists) in (0..).zip(&lists) {
            lists[batch].iter().for_each(|item| last[*item as usize] = writer);
        }
        worker.barrier()?;
    }
    Ok(since.elapsed().as_secs_f64() / ((PASSES - WARM) * BATCHES) as f64)
}

pub(crate) fn play(kind: &str) -> Result<()> {
    let (mut worker, _) = worker()?;
    let seconds = match kind {
        "in-place" => in_place(&mut worker)?,
        _ => published(&mut worker)?,
    };
    if worker.rank() == 0 {
        println!("figure {seconds}");
    }
    worker.barrier()
}

pub(crate) fn measure(cluster: &Cluster, mtu: u32) {
    println!(
        "\nbatches of 2 x {SHARE} ratings, rank {RANK}, half of the items change owners, MTU {mtu}: seconds per batch"
    );
    let (two, one) = (cluster.list(1), cluster.list(2));
    let one = one.split(',').next().expect("a host").to_owned();
    let cases = [
        ("in place, two hosts", &two, "in-place"),
        ("published, two hosts", &two, "published"),
        ("in place, one host", &one, "in-place"),
        ("published, one host", &one, "published"),
    ];
    let mut times = cases.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, hosts, kind), times) in cases.iter().zip(&mut times) {
            let said = cluster.run(&["--hosts", hosts, "--timeout", "60"], &in_role(&format!("rows {kind}")));
            assert_eq!(said.code, 0, "{said:?}");
            times.push(figure(&said.out));
        }
    }
    let mut medians = Vec::new();
    for ((what, ..), times) in cases.iter().zip(&mut times) {
        medians.push(median(times));
        println!("    {what:<22} median {:.6}  best {:.6}", median(times), best(times));
    }
    println!(
        "    one host over two: {:.2} in place, {:.2} published",
        medians[2] / medians[0],
        medians[3] / medians[1]
    );
    println!("    published over in place, two hosts: {:.2}", medians[1] / medians[0]);
}
