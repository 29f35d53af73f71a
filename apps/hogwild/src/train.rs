//! Epochs and periods.
use crate::data::Examples;
use crate::model::Model;
use crate::options::{Consistency, Options};
use anyhow::{Result, ensure};
use hectare::Worker;
use std::time::Instant;

/// Learns; the first worker reports the loss.
pub(crate) fn train(worker: &mut Worker, size: usize, examples: &Examples, options: &Options) -> Result<()> {
    let mut model = Model::new(worker, size, examples.features)?;
    let tests = worker.rank() == 0;
    if tests {
        println!(
            "{size} workers, {}: test loss {:.9} before",
            options.consistency,
            model.loss(&examples.test)
        );
    }
    worker.barrier()?;
    let mut rate = options.rate;
    for epoch in 1..=options.epochs {
        let since = Instant::now();
        pass(worker, &mut model, examples, rate, options)?;
        if epoch == options.epochs {
            // All that everybody did, whatever the consistency.
            worker.barrier()?;
            model.catch_up(worker)?;
        }
        if tests {
            let (loss, took) = (model.loss(&examples.test), since.elapsed().as_secs_f64());
            ensure!(loss.is_finite(), "the loss is {loss} after epoch {epoch}: try a smaller --rate");
            println!("epoch {epoch}: test loss {loss:.9}, {took:.3} s");
        }
        rate *= options.decay;
    }
    // Nobody leaves before all have read what this worker published.
    worker.barrier()?;
    Ok(())
}

/// Once through the worker's examples, in periods: as many for each worker, whose clocks have to agree at the end.
fn pass(
    worker: &mut Worker,
    model: &mut Model,
    examples: &Examples,
    rate: f64,
    options: &Options,
) -> Result<()> {
    let (mine, periods) = (examples.train.len(), examples.longest.div_ceil(options.every));
    for period in 0..periods {
        let part = &examples.train[mine * period / periods..mine * (period + 1) / periods];
        model.learn(worker, rate, part.iter())?;
        match options.consistency {
            Consistency::Bsp => worker.barrier()?,
            Consistency::Bounded(staleness) => {
                worker.tick()?;
                worker.wait_clocks(staleness)?;
            }
            Consistency::Async => worker.service()?,
        }
        model.catch_up(worker)?;
    }
    Ok(())
}
