//! Training: round after round of features.
use super::data::Data;
use super::machine::{Machine, Plain, Workers};
use super::model::Model;
use super::options::Options;
use super::problem::Problem;
use super::test;
use super::training::{self, Curve, say};
use hectare::orion::priority::Priority;
use hectare::orion::{Context, Error, Result};

const ADVICE: &str = "targets and features are too large for numbers of 64 bits: scale them";

/// The trained model, and the course of the training.
#[derive(Clone, Debug)]
pub(crate) struct Trained {
    pub(crate) model: Model,
    pub(crate) curve: Curve,
    pub(crate) objective: f64,
    /// By the duality gap, no less than the best objective is below this one.
    pub(crate) gap: f64,
    /// Inner products of columns with what is left over: updates, and those by which weights to draw by and gaps were found.
    pub(crate) updates: u64,
}

/// Trains: on the workers, or, if `is_serial`, by the loops that one would write without Hectare. Collective.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, data: &Data, is_serial: bool) -> Result<Trained> {
    w.set_seed(o.seed);
    let Data { columns, targets, .. } = data;
    let problem = Problem::new(columns, targets, o);
    let trained = match is_serial {
        true => Descent { o, machine: Plain::new(columns, targets), problem, updates: 0 }.run(w)?,
        false => {
            let machine = Workers::new(w, columns, targets)?;
            Descent { o, machine, problem, updates: 0 }.run(w)?
        }
    };
    test::measure(w, o, &data.test, &trained.model, false)?;
    training::explain(w, &o.run)?;
    let saved = w.root(|| o.save.as_ref().map_or(Ok(()), |path| trained.model.write(path)));
    w.broadcast(|| saved.unwrap_or(Ok(())))?;
    Ok(trained)
}

struct Descent<'a, M> {
    o: &'a Options,
    machine: M,
    problem: Problem<'a>,
    updates: u64,
}

impl<M: Machine> Descent<'_, M> {
    fn run(mut self, w: &mut Context<'_>) -> Result<Trained> {
        let (o, count) = (self.o, self.problem.weights.len());
        let mut curve = Curve::of("objective", ADVICE);
        curve.begin();
        let mut priority = Priority::new(count).batch(o.batch).bound(o.bound).explore(o.explore);
        priority = match o.uniform {
            true => priority.uniform(),
            false => priority.weigh(self.first_weights(w)?),
        };
        let first = self.objective(w)?;
        let (mut objective, mut gap) = (first, f64::INFINITY);
        for _ in 0..o.passes {
            curve.begin_unless_begun();
            let (before, end) = (objective, self.updates + count as u64);
            while self.updates < end {
                self.round(w, &mut priority)?;
                objective = self.objective(w)?;
                // Steps that were taken one by one would never do that.
                if objective > first * (1.0 + 1e-9) {
                    return Err(Error::Invalid(format!(
                        "round {}: the objective has grown to {objective}, and was {first} at first: features of a round depend on \
                         each other too much; try a smaller --bound or --batch",
                        priority.rounds()
                    )));
                }
                if o.run.target.is_some_and(|target| objective <= target) {
                    break;
                }
            }
            // The gap costs as much as a pass.
            if before - objective < 0.1 * before.max(f64::MIN_POSITIVE) * o.gap.max(1e-12) {
                gap = self.gap(w)?;
            }
            curve.end();
            let used = self.problem.weights.iter().filter(|weight| **weight != 0.0).count();
            let gap_said =
                if gap.is_finite() { format!(", at most {gap:.2e} above the best") } else { String::new() };
            curve.note(format!(
                "{objective:.9}{gap_said}, {used} of {count} weights, {} updates in {} rounds, {} correlations",
                self.updates,
                priority.rounds(),
                priority.evaluated()
            ));
            if !curve.push(&o.run, None, objective, Some(w))? || gap <= o.gap * objective {
                break;
            }
        }
        let model = Model::of(&self.problem, o);
        Ok(Trained { model, curve, objective, gap, updates: self.updates })
    }

    /// How much each weight would change first. Collective.
    fn first_weights(&mut self, w: &mut Context<'_>) -> Result<Vec<f64>> {
        let products = self.all_products(w)?;
        let greatest = self.problem.greatest_lambda(&products);
        if !self.o.run.quiet {
            w.root(|| say(format_args!("all weights are 0 from --lambda {greatest:.6} on")));
        }
        let problem = &self.problem;
        let each = products.iter().enumerate();
        Ok(each.map(|(column, product)| problem.importance(column, problem.step(column, *product))).collect())
    }

    fn all_products(&mut self, w: &mut Context<'_>) -> Result<Vec<f64>> {
        let all: Vec<usize> = (0..self.problem.weights.len()).collect();
        self.updates += all.len() as u64;
        self.machine.products(w, &all)
    }

    /// Collective.
    fn round(&mut self, w: &mut Context<'_>, priority: &mut Priority) -> Result<()> {
        let Descent { machine, problem, .. } = self;
        let round = priority.draw(w, |a, b| problem.dependency(a, b))?;
        let products = machine.products(w, &round)?;
        let each = round.iter().zip(products);
        let steps: Vec<(usize, f64)> =
            each.map(|(column, product)| (*column, problem.step(*column, product))).collect();
        let changes: Vec<_> = steps.iter().copied().filter(|(_, step)| *step != 0.0).collect();
        if !changes.is_empty() {
            machine.apply(w, &changes)?;
        }
        changes.iter().for_each(|(column, step)| problem.change(*column, *step));
        self.updates += round.len() as u64;
        priority
            .feed(&steps.iter().map(|(column, step)| problem.importance(*column, *step)).collect::<Vec<_>>())
    }

    fn objective(&mut self, w: &mut Context<'_>) -> Result<f64> {
        let squares = self.machine.squares(w, self.problem.constant)?;
        Ok(self.problem.objective(squares))
    }

    fn gap(&mut self, w: &mut Context<'_>) -> Result<f64> {
        let products = self.all_products(w)?;
        let squares = self.machine.squares(w, self.problem.constant)?;
        Ok(self.problem.gap(&products, squares, self.problem.along(&products, squares)))
    }
}
