//! WarpLDA: the same bits on any number of workers, the right frequencies, and what it learns.
use super::lda::{self, Corpus, Counts, warp};
use super::{gibbs, options};
use hectare::orion::array::random::Stream;
use hectare::orion::relax::Consistency;
use warp::{Choice, Phase, Scratch};

#[test]
fn any_number_of_workers_gives_the_bits_of_the_serial_twin() {
    let o = options(&["--passes", "6"]);
    let corpus = Corpus::load(&o).unwrap();
    let mut twin = Vec::new();
    let curve = lda::serial_warp(&o, &corpus, &mut |model| {
        twin.push((model.doc_topic.clone(), model.word_topic.clone(), model.totals.clone()));
    });
    let perplexities: Vec<f64> = curve.unwrap().points().map(|point| point.1).collect();
    assert!(twin.windows(2).all(|two| two[0] != two[1]), "each pass changes topics");
    for workers in [1, 2, 3, 4, 7] {
        let states = hectare::run(workers, |w| {
            let mut model = warp::Model::new(w, &o, &corpus)?;
            let mut states = Vec::new();
            for pass in 0..o.passes() {
                model.pass(w, warp::numbers(&o, pass))?;
                let Counts { doc_topic, word_topic, totals } = model.counts(w)?;
                states.push((doc_topic.to_vec(w)?, word_topic.to_vec(w)?, totals));
            }
            Ok(states)
        });
        assert!(states.unwrap().iter().all(|states| *states == twin), "{workers} workers");
        let all = hectare::run(workers, |w| lda::train(w, &o, &corpus, Consistency::Bsp)).unwrap();
        for (ours, theirs) in all[0].points().zip(&perplexities) {
            // The sums of logarithms have another order.
            assert!((ours.1 / theirs - 1.0).abs() < 1e-9, "{workers} workers: {ours:?}, {theirs}");
        }
    }
}

#[test]
fn it_learns_what_gibbs_sampling_learns() {
    let more = ["--documents", "400", "--passes", "160"];
    let last = |o: &lda::Options, curve: lda::training::Curve| {
        let values: Vec<f64> = curve.points().map(|point| point.1).collect();
        (values[0], values[o.passes() - 20..].iter().sum::<f64>() / 20.0)
    };
    let (o, exact) = (options(&more), gibbs(&more));
    let corpus = Corpus::load(&o).unwrap();
    let (first, ours) = last(&o, lda::serial_warp(&o, &corpus, &mut |_| ()).unwrap());
    let order: Vec<usize> = (0..corpus.train.len()).collect();
    let (_, theirs) = last(&exact, lda::serial(&exact, &corpus, &order, &mut |_| ()).unwrap());
    assert!(theirs < 0.8 * first && (ours / theirs - 1.0).abs() < 0.03, "{first}, {ours}, {theirs}");
}

#[test]
fn steps_keep_the_distribution_that_they_are_for() {
    // One token, and the totals of all others: the probability of a topic is 1 / total.
    let others = [6.0f32, 3.0, 2.0, 12.0, 4.0];
    let (steps, numbers) = (200_000u64, Stream::new(4, "steps"));
    let (mut scratch, mut found, mut topic) = (Scratch::new(others.len()), [0u64; 5], 0u16);
    for step in 0..steps {
        let mut totals = others;
        totals[usize::from(topic)] += 1.0;
        scratch.tokens.clear();
        // Symmetric proposals: from any topic to any other.
        let proposed = numbers.below(step, others.len() as u64) as u16;
        scratch.tokens.push(Choice::new(topic, proposed));
        let mut sums = [0; 5];
        Phase::new(0.3, &totals, numbers.child(step)).visit(0, &mut scratch, &mut sums);
        topic = scratch.tokens[0].topic() as u16;
        assert_eq!((sums.iter().sum::<i32>(), sums[usize::from(topic)]), (1, 1));
        found[usize::from(topic)] += 1;
    }
    let sum: f32 = others.iter().map(|total| 1.0 / total).sum();
    for (found, total) in found.iter().zip(others) {
        let share = *found as f64 / steps as f64;
        assert!((share / f64::from(1.0 / total / sum) - 1.0).abs() < 0.02, "{share} of {total}");
    }
}

#[test]
fn proposals_have_the_frequencies_of_the_group_and_its_prior() {
    let (prior, topics, numbers) = (0.5f32, 4usize, Stream::new(5, "proposals"));
    let group: Vec<u16> = [0; 6].into_iter().chain([2; 3]).chain([3]).collect();
    let (totals, mut scratch) = (vec![1e6; topics], Scratch::new(topics));
    let (runs, mut found) = (20_000u64, vec![0u64; topics]);
    for run in 0..runs {
        scratch.tokens.clear();
        scratch.tokens.extend(group.iter().map(|topic| Choice::new(*topic, *topic)));
        Phase::new(prior, &totals, numbers.child(run)).visit(7, &mut scratch, &mut vec![0; topics]);
        for (token, topic) in scratch.tokens.iter().zip(&group) {
            assert_eq!(token.topic(), usize::from(*topic), "what is proposed is the same");
            found[token.proposed()] += 1;
        }
    }
    for (topic, found) in found.iter().enumerate() {
        let count = group.iter().filter(|other| usize::from(**other) == topic).count() as f64;
        let expected = (count + f64::from(prior)) / (group.len() as f64 + f64::from(prior) * topics as f64);
        let share = *found as f64 / (runs * group.len() as u64) as f64;
        assert!((share - expected).abs() < 0.005, "topic {topic}: {share}, {expected}");
    }
}
