//! The model: the sum of all workers' steps, each in an area of its own.
use hectare::{Area, AreaSpec, Owned, Result, Version, Worker};
use std::time::Duration;

/// How long a worker waits for the areas of the others.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Without barriers, steps are published this often.
const INTERVAL: Duration = Duration::from_millis(1);

/// A worker's weights, its steps, and those of the others as far as they are in the weights.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) weights: Vec<f64>,
    steps: Owned<f64>,
    /// Of every worker, by rank; and the version that is in the weights.
    all: Vec<(Area<f64>, Version)>,
}

impl Model {
    /// Weights of zero. Every worker calls this.
    pub(crate) fn new(worker: &mut Worker, size: usize, features: usize) -> Result<Model> {
        let name = |rank: usize| format!("steps/{rank}");
        let spec = AreaSpec::new(name(worker.rank() as usize)).copies(2).interval(INTERVAL);
        let steps = worker.create::<f64>(spec, features)?;
        let mut all = Vec::with_capacity(size);
        for rank in 0..size {
            let area = worker.attach_within::<f64>(&name(rank), LONGEST_WAIT)?;
            let version = area.version(worker)?;
            all.push((area, version));
        }
        Ok(Model { weights: vec![0.0; features], steps, all })
    }

    /// Learns from one example after the other: a step of `rate` against the slope of the logistic loss.
    pub(crate) fn learn<'e>(
        &mut self,
        worker: &Worker,
        rate: f64,
        examples: impl Iterator<Item = &'e hectare_data::text::LabelledRow>,
    ) -> Result<()> {
        let mut steps = self.steps.write(worker)?;
        for example in examples {
            let label = f64::from(example.label);
            let step = rate * label * share_of_loss(label * margin(&self.weights, &example.features));
            for &(feature, value) in &example.features {
                let (at, change) = (feature as usize, step * f64::from(value));
                self.weights[at] += change;
                let sum = steps[at] + change;
                steps.set(at, sum);
            }
        }
        Ok(())
    }

    /// Brings what others published into the weights. Only what changed is looked at; each weight is summed in the order
    /// of the ranks, so that all workers who see the same versions have the same bits.
    pub(crate) fn catch_up(&mut self, worker: &Worker) -> Result<()> {
        let mut changed = Vec::new();
        for (area, seen) in &mut self.all {
            let now = area.version(worker)?;
            if now != *seen {
                changed.append(&mut area.changed_since(worker, *seen)?);
                *seen = now;
            }
        }
        let me = worker.rank() as usize;
        let read = |(rank, (area, _)): (usize, &'_ (Area<f64>, Version))| match rank == me {
            // Its own steps as they are now, published or not.
            true => self.steps.read(worker),
            false => area.read(worker),
        };
        let views = self.all.iter().enumerate().map(read).collect::<Result<Vec<&[f64]>>>()?;
        for range in changed {
            for at in range {
                self.weights[at] = views.iter().map(|view| view[at]).sum();
            }
        }
        Ok(())
    }

    /// The mean logistic loss over examples.
    pub(crate) fn loss(&self, examples: &[hectare_data::text::LabelledRow]) -> f64 {
        let of = |example: &hectare_data::text::LabelledRow| {
            let margin = f64::from(example.label) * margin(&self.weights, &example.features);
            // ln(1 + exp(-margin)), without a power that overflows.
            (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
        };
        examples.iter().map(of).sum::<f64>() / examples.len() as f64
    }
}

fn margin(weights: &[f64], features: &[(u32, f32)]) -> f64 {
    features.iter().map(|&(feature, value)| weights[feature as usize] * f64::from(value)).sum()
}

/// 1 / (1 + exp(margin)), for margins of any size.
fn share_of_loss(margin: f64) -> f64 {
    let power = (-margin.abs()).exp();
    if margin > 0.0 { power / (1.0 + power) } else { 1.0 / (1.0 + power) }
}
