//! The problem: least squares with a penalty, of columns with their means taken away, and the weights so far.
//!
//! The objective is that of scikit-learn, `squares / (2 rows) + LAMBDA * sum of |weight|`. With an intercept, columns and targets
//! count without their means. Columns stay sparse: what they are less is a constant, the same for all rows.
use super::columns::Columns;
use super::options::Options;

/// A column, as the problem sees it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    mean: f64,
    /// The sum of its values.
    sum: f64,
    /// The sum of the squares of its values without their mean; 0 if there is nothing to learn by it.
    squares: f64,
}

pub(crate) struct Problem<'a> {
    columns: &'a Columns,
    shapes: Vec<Shape>,
    rows: f64,
    /// The mean of the targets.
    mean: f64,
    lambda: f64,
    pub(crate) weights: Vec<f64>,
    /// To be added to the machine's residuals.
    pub(crate) constant: f64,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(columns: &'a Columns, targets: &[f64], o: &Options) -> Problem<'a> {
        let rows = targets.len() as f64;
        let mean = |sum: f64| if o.no_intercept { 0.0 } else { sum / rows };
        let shape = |column| {
            let [sum, squares] = columns.sums(column);
            let rest = squares - rows * mean(sum).powi(2);
            // A constant column is not zero to the last bit.
            let squares = if rest > 1e-12 * squares { rest } else { 0.0 };
            Shape { mean: mean(sum), sum, squares }
        };
        let mean = mean(targets.iter().sum());
        Problem {
            columns,
            shapes: (0..columns.count()).map(shape).collect(),
            rows,
            mean,
            lambda: o.lambda,
            weights: vec![0.0; columns.count()],
            constant: -mean,
        }
    }

    /// How far from independent two columns are: the size of their correlation.
    pub(crate) fn dependency(&self, a: usize, b: usize) -> f64 {
        let (one, other) = (self.shapes[a], self.shapes[b]);
        let squares = one.squares * other.squares;
        if squares == 0.0 {
            return 0.0;
        }
        let product = self.columns.product(a, b) - self.rows * one.mean * other.mean;
        product.abs() / squares.sqrt()
    }

    /// The inner product of a column without its mean with what is left over, given that of the column.
    fn slope(&self, column: usize, product: f64) -> f64 {
        product + self.constant * self.shapes[column].sum
    }

    /// By how much a weight has to change to be best while the others stay.
    pub(crate) fn step(&self, column: usize, product: f64) -> f64 {
        let squares = self.shapes[column].squares;
        if squares == 0.0 {
            return 0.0;
        }
        let (weight, penalty) = (self.weights[column], self.rows * self.lambda);
        let wanted = self.slope(column, product) + squares * weight;
        let best = (wanted.abs() - penalty).max(0.0).copysign(wanted) / squares;
        best - weight
    }

    /// How much a step changes the predictions: the mean of the squares.
    pub(crate) fn importance(&self, column: usize, step: f64) -> f64 {
        self.shapes[column].squares * step * step / self.rows
    }

    /// Takes a step.
    pub(crate) fn change(&mut self, column: usize, step: f64) {
        self.weights[column] += step;
        self.constant += step * self.shapes[column].mean;
    }

    fn size(&self) -> f64 {
        self.weights.iter().map(|weight| weight.abs()).sum()
    }

    /// The objective, given the squares of what is left over.
    pub(crate) fn objective(&self, squares: f64) -> f64 {
        squares / (2.0 * self.rows) + self.lambda * self.size()
    }

    /// The penalty from which on all weights are 0, given the products of all columns at the beginning.
    pub(crate) fn greatest_lambda(&self, products: &[f64]) -> f64 {
        self.greatest_slope(products) / self.rows
    }

    fn greatest_slope(&self, products: &[f64]) -> f64 {
        let size = |(column, product): (usize, &f64)| match self.shapes[column].squares {
            0.0 => 0.0,
            _ => self.slope(column, *product).abs(),
        };
        products.iter().enumerate().map(size).fold(0.0, f64::max)
    }

    /// How far the objective may be from the best one, at most: the gap to the dual problem at what is left over, scaled so that it
    /// is allowed there. `along` is the inner product of what is left over with the targets.
    pub(crate) fn gap(&self, products: &[f64], squares: f64, along: f64) -> f64 {
        let penalty = self.rows * self.lambda;
        let greatest = self.greatest_slope(products);
        let scale = if greatest > penalty { penalty / greatest } else { 1.0 };
        let dual = scale * along - 0.5 * scale * scale * squares;
        (self.objective(squares) - dual / self.rows).max(0.0)
    }

    /// The inner product of what is left over with the targets: they are what is left over and what is predicted.
    pub(crate) fn along(&self, products: &[f64], squares: f64) -> f64 {
        let predicted = self.weights.iter().zip(products).enumerate();
        squares
            + predicted.map(|(column, (weight, product))| weight * self.slope(column, *product)).sum::<f64>()
    }

    pub(crate) fn intercept(&self) -> f64 {
        let predicted = self.weights.iter().zip(&self.shapes).map(|(weight, shape)| weight * shape.mean);
        self.mean - predicted.sum::<f64>()
    }
}
