//! Linear forms over integer variables, in checked arithmetic.

/// The largest magnitude that results may have; larger ones count as overflow, so that negation never overflows.
const LIMIT: u128 = 1 << 124;

/// A number within the limit.
pub(super) fn within(number: i128) -> Option<i128> {
    (number.unsigned_abs() <= LIMIT).then_some(number)
}

/// `sum + a · b`; `None` on overflow.
pub(super) fn add_product(sum: i128, a: i128, b: i128) -> Option<i128> {
    sum.checked_add(a.checked_mul(b)?).and_then(within)
}

/// `constant + Σ coefficients[k] · x[k]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) constant: i128,
    pub(super) coefficients: Vec<i128>,
}

impl Row {
    /// A constant, over `variables` variables.
    pub(super) fn constant(constant: i128, variables: usize) -> Row {
        Row { constant, coefficients: vec![0; variables] }
    }

    /// `constant + factor · x[variable]`.
    pub(super) fn single(constant: i128, factor: i128, variable: usize, variables: usize) -> Row {
        let mut row = Row::constant(constant, variables);
        row.coefficients[variable] = factor;
        row
    }

    /// `a · self + b · other`; `None` on overflow.
    pub(super) fn combine(&self, a: i128, other: &Row, b: i128) -> Option<Row> {
        let mix = |x: i128, y: i128| add_product(add_product(0, x, a)?, y, b);
        let pairs = self.coefficients.iter().zip(&other.coefficients);
        Some(Row {
            constant: mix(self.constant, other.constant)?,
            coefficients: pairs.map(|(x, y)| mix(*x, *y)).collect::<Option<_>>()?,
        })
    }

    /// Its value for the first variables; the others count as 0. `None` on overflow.
    pub(super) fn eval(&self, values: &[i128]) -> Option<i128> {
        self.coefficients.iter().zip(values).try_fold(self.constant, |sum, (c, v)| add_product(sum, *c, *v))
    }

    /// The strongest form of `self >= 0` for integers: coefficients without a common factor, the constant
    /// rounded down.
    pub(super) fn tighten(&mut self) {
        let divisor = gcd_of(self.coefficients.iter().copied());
        if divisor > 1 {
            if super::mutant::is(super::mutant::Mutant::RoundedUp) {
                self.constant += divisor - 1;
            }
            self.coefficients.iter_mut().for_each(|c| *c /= divisor);
            self.constant = self.constant.div_euclid(divisor);
        }
    }
}

/// The greatest common divisor, not negative; 0 for (0, 0).
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    // Numbers are within LIMIT, so the divisor is.
    a as i128
}

/// The greatest common divisor of all of them; 0 if there are none but zeros.
pub(super) fn gcd_of(numbers: impl Iterator<Item = i128>) -> i128 {
    let mut divisor = 0;
    for number in numbers {
        divisor = gcd(divisor, number);
        if divisor == 1 {
            break;
        }
    }
    divisor
}

/// `a / b`, rounded down; `b > 0`.
pub(super) fn floor_div(a: i128, b: i128) -> i128 {
    a.div_euclid(b)
}

/// `a / b`, rounded up; `b > 0`.
pub(super) fn ceil_div(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)
}
