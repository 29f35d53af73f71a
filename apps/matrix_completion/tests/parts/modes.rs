//! Training in every mode: the same losses whoever computes them, and they fall.
use crate::matrix_completion::data::Rating;
use crate::matrix_completion::exchange::Exchange;
use crate::matrix_completion::kernel::Step;
use crate::matrix_completion::options::Transports;
use crate::support::{TRANSPORTS, Way, bits, losses, plan, small_data};
use std::collections::HashSet;

#[test]
fn modes_with_batches_have_the_same_losses_for_every_worker_count() {
    let data = small_data(3);
    for (rank, step) in [(16, Step::Fixed), (20, Step::Adagrad), (130, Step::Fixed)] {
        let expected = bits(&losses::<f32>(&data, rank, step, 3, Way::Serial, 1));
        for workers in [1, 2, 3, 4, 8] {
            let plan = plan(&data, 60, workers, true);
            let found = bits(&losses::<f32>(&data, rank, step, 3, Way::Shared(&plan), workers));
            assert_eq!(found, expected, "shared, rank {rank}, {step:?}, {workers} workers");
            for transport in TRANSPORTS {
                let found = bits(&losses::<f32>(&data, rank, step, 3, Way::Areas(&plan, transport), workers));
                assert_eq!(found, expected, "{transport:?}, rank {rank}, {step:?}, {workers} workers");
            }
        }
    }
    let expected = bits(&losses::<f64>(&data, 100, Step::Fixed, 3, Way::Serial, 1));
    let without_affinity = plan(&data, 60, 2, false);
    let found = bits(&losses::<f64>(&data, 100, Step::Fixed, 3, Way::Shared(&without_affinity), 2));
    assert_eq!(found, expected, "shared, f64");
    for transport in TRANSPORTS {
        let way = Way::Areas(&without_affinity, transport);
        assert_eq!(bits(&losses::<f64>(&data, 100, Step::Fixed, 3, way, 2)), expected, "{transport:?}, f64");
    }
}

#[test]
fn areas_take_more_workers_than_batches_have_ratings() {
    let data = small_data(3);
    let expected = bits(&losses::<f32>(&data, 8, Step::Fixed, 1, Way::Serial, 1));
    let plan = plan(&data, 30, 40, true);
    let found = bits(&losses::<f32>(&data, 8, Step::Fixed, 1, Way::Areas(&plan, Transports::Published), 2));
    assert_eq!(found, expected);
}

#[test]
fn handover_repeats_itself_and_learns() {
    let data = small_data(5);
    for workers in [1, 2, 3, 8] {
        for step in [Step::Fixed, Step::Adagrad] {
            let first = losses::<f32>(&data, 16, step, 5, Way::Handover(workers), 2);
            let again = losses::<f32>(&data, 16, step, 5, Way::Handover(workers), 2);
            assert_eq!(bits(&first), bits(&again), "{workers} workers, {step:?}");
            for pair in first.windows(2) {
                assert!(
                    pair[1][0] < pair[0][0],
                    "{workers} workers, {step:?}: training loss rises in {first:?}"
                );
            }
            assert!(first[4][1] < 1.0, "{workers} workers, {step:?}: {first:?}");
        }
    }
}

#[test]
fn what_is_sent_is_what_is_imported() {
    let data = small_data(11);
    for workers in [1, 2, 5] {
        let plan = plan(&data, 60, workers, true);
        let exchange = Exchange::new(&plan);
        assert_eq!(exchange.rows(), plan.imports().count(1));
        let parcels: Vec<HashSet<u32>> = (0..plan.batches() * workers * workers)
            .map(|parcel| {
                let (batch, pair) = (parcel / (workers * workers), parcel % (workers * workers));
                exchange.parcel(batch, pair / workers, pair % workers).iter().copied().collect()
            })
            .collect();
        for (batch, to) in (0..plan.batches()).flat_map(|batch| (0..workers).map(move |to| (batch, to))) {
            for import in plan.imports().of(1, to, batch) {
                let parcel = (import.written as usize * workers + import.from as usize) * workers + to;
                assert!(parcels[parcel].contains(&import.row), "{import:?} of worker {to} in batch {batch}");
            }
            // The plan's share in another order, in which components that need nothing from the batch before come
            // first, and each keeps its own order.
            let share = exchange.share(batch, to);
            let ratings = &share.ratings[..share.count];
            let (early, late) = ratings.split_at(share.early);
            let rows = |ratings: &[Rating]| -> HashSet<u32> {
                ratings.iter().flat_map(|rating| plan.rows_of(rating)).collect()
            };
            assert!(rows(early).is_disjoint(&rows(late)));
            let kept = |part: &[Rating]| -> Vec<Rating> {
                let rows = rows(part);
                let keep = |rating: &&Rating| rows.contains(&rating.user);
                plan.share(to, batch).iter().filter(keep).copied().collect()
            };
            assert_eq!([early, late].map(<[Rating]>::to_vec), [kept(early), kept(late)]);
            let before = (batch + plan.batches() - 1) % plan.batches();
            for import in plan.imports().of(1, to, batch) {
                assert!(import.written as usize != before || !rows(early).contains(&import.row));
            }
            // Sent after its last use, to a place of its own.
            for send in exchange.sends(batch, to) {
                assert_eq!(exchange.parcel(batch, to, send.to as usize)[send.slot as usize], send.row);
                let last = ratings.iter().rposition(|rating| plan.rows_of(rating).contains(&send.row));
                assert_eq!(last, Some(send.after as usize));
            }
        }
        let mut homes: Vec<u32> = (0..workers).flat_map(|worker| exchange.home(worker).to_vec()).collect();
        homes.sort_unstable();
        assert!(homes.iter().copied().eq(0..(data.users + data.items) as u32), "every row has one home");
    }
}

#[test]
fn the_test_error_falls() {
    for (step, bound) in [(Step::Fixed, 1.0), (Step::Adagrad, 1.0)] {
        let data = small_data(5);
        let losses = losses::<f32>(&data, 16, step, 5, Way::Serial, 2);
        let mean_only = (data.test.iter().map(|rating| f64::from(rating.value).powi(2)).sum::<f64>()
            / data.test.len() as f64)
            .sqrt();
        assert!(losses[0][1] < mean_only, "{step:?}: {losses:?} against {mean_only}");
        for pair in losses.windows(2) {
            assert!(pair[1][0] < pair[0][0], "{step:?}: training loss rises in {losses:?}");
            assert!(pair[1][1] < pair[0][1] + 0.005, "{step:?}: test RMSE rises in {losses:?}");
        }
        assert!(losses[4][1] < bound, "{step:?}: {losses:?}");
    }
}
