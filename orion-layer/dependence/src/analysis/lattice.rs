//! The integer solutions of linear equations, as a lattice.
use super::linear::{Row, add_product};

/// `x = origin + Σ t[c] · basis[c]`, for every integer vector `t`.
#[derive(Clone, Debug)]
pub(super) struct Lattice {
    pub(super) origin: Vec<i128>,
    pub(super) basis: Vec<Vec<i128>>,
}

/// A number left the range of 128 bits; what was asked stays unknown.
#[derive(Debug)]
pub(super) struct Overflow;

impl Lattice {
    /// Every integer point.
    pub(super) fn all(variables: usize) -> Lattice {
        let unit = |k: usize| (0..variables).map(|j| i128::from(j == k)).collect();
        Lattice { origin: vec![0; variables], basis: (0..variables).map(unit).collect() }
    }

    /// Keeps the points where the form is zero; `false` if there are none.
    ///
    /// Column operations bring the coefficients of the form over `t` to one number, their greatest common divisor
    /// (a row of the Hermite normal form; Schrijver 1986, section 4). There is a solution exactly if it divides
    /// the constant: the GCD test, for all equations together.
    pub(super) fn restrict(&mut self, zero: &Row) -> Result<bool, Overflow> {
        let constant = zero.eval(&self.origin).ok_or(Overflow)?;
        let mut row = Vec::with_capacity(self.basis.len());
        for column in &self.basis {
            row.push(dot(&zero.coefficients, column).ok_or(Overflow)?);
        }
        let Some(pivot) = self.gather(&mut row, 0)? else { return Ok(constant == 0) };
        let divisor = row[pivot];
        if constant % divisor != 0 {
            return Ok(false);
        }
        let column = self.basis.remove(pivot);
        let fixed = -(constant / divisor);
        add_scaled(&mut self.origin, fixed, &column)?;
        Ok(true)
    }

    /// Column operations that leave only one of `row[from..]` different from zero; says which one.
    fn gather(&mut self, row: &mut [i128], from: usize) -> Result<Option<usize>, Overflow> {
        loop {
            let nonzero = (from..row.len()).filter(|c| row[*c] != 0);
            let Some(pivot) = nonzero.min_by_key(|c| row[*c].unsigned_abs()) else { return Ok(None) };
            let mut done = true;
            for c in (from..row.len()).filter(|c| *c != pivot) {
                let factor = row[c] / row[pivot];
                if factor != 0 {
                    let column = self.basis[pivot].clone();
                    add_scaled(&mut self.basis[c], -factor, &column)?;
                    row[c] -= factor * row[pivot];
                }
                done &= row[c] == 0;
            }
            if done {
                return Ok(Some(pivot));
            }
        }
    }

    /// Brings the basis to column echelon form, for the variables in this order, which may leave some out: each is
    /// then fixed by the first few of `t`. Returns how many of `t` fix all of them.
    pub(super) fn echelon(&mut self, order: impl Iterator<Item = usize>) -> Result<usize, Overflow> {
        let mut done = 0;
        for variable in order {
            let mut row: Vec<i128> = self.basis.iter().map(|column| column[variable]).collect();
            if let Some(pivot) = self.gather(&mut row, done)? {
                self.basis.swap(done, pivot);
                done += 1;
            }
        }
        Ok(done)
    }

    /// A form over the variables as a form over `t`.
    pub(super) fn substitute(&self, form: &Row) -> Option<Row> {
        // Of a bound one or two are not zero.
        let terms = form.coefficients.iter().enumerate().filter(|(_, factor)| **factor != 0);
        let mut along = Row { constant: form.constant, coefficients: vec![0; self.basis.len()] };
        for (variable, factor) in terms {
            along.constant = add_product(along.constant, *factor, self.origin[variable])?;
            for (sum, column) in along.coefficients.iter_mut().zip(&self.basis) {
                match column[variable] {
                    0 => {}
                    1 => *sum = sum.checked_add(*factor)?,
                    other => *sum = add_product(*sum, *factor, other)?,
                }
            }
        }
        Some(along)
    }

    /// The value of a variable where the first few of `t` are these and the others do not matter to it.
    pub(super) fn value(&self, variable: usize, t: &[i128]) -> Option<i128> {
        let terms = self.basis.iter().zip(t);
        terms
            .into_iter()
            .try_fold(self.origin[variable], |sum, (column, t)| add_product(sum, column[variable], *t))
    }

    /// The value of a variable that is the same at every point.
    pub(super) fn fixed(&self, variable: usize) -> Option<i128> {
        self.basis.iter().all(|column| column[variable] == 0).then_some(self.origin[variable])
    }
}

fn dot(a: &[i128], b: &[i128]) -> Option<i128> {
    a.iter().zip(b).try_fold(0, |sum, (x, y)| add_product(sum, *x, *y))
}

fn add_scaled(to: &mut [i128], factor: i128, from: &[i128]) -> Result<(), Overflow> {
    for (x, y) in to.iter_mut().zip(from) {
        *x = add_product(*x, factor, *y).ok_or(Overflow)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_solution_is_a_point_and_every_point_a_solution() {
        // 6x + 10y + 15z = 1 has solutions although no two coefficients are coprime.
        let equation = Row { constant: -1, coefficients: vec![6, 10, 15] };
        let mut lattice = Lattice::all(3);
        assert!(lattice.restrict(&equation).unwrap());
        assert_eq!(lattice.basis.len(), 2);
        let along = lattice.substitute(&equation).unwrap();
        assert_eq!((along.constant, along.coefficients), (0, vec![0, 0]));
        // The lattice has the determinant that an equation with coprime coefficients must give: its cross
        // product is the vector of coefficients up to sign.
        let (a, b) = (&lattice.basis[0], &lattice.basis[1]);
        let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
        assert!(cross == [6, 10, 15] || cross == [-6, -10, -15], "{cross:?}");

        let mut even = Lattice::all(2);
        assert!(!even.restrict(&Row { constant: 1, coefficients: vec![2, 4] }).unwrap());
    }

    #[test]
    fn echelon_form_fixes_variables_one_after_the_other() {
        let mut lattice = Lattice::all(3);
        assert!(lattice.restrict(&Row { constant: 0, coefficients: vec![1, -2, 0] }).unwrap());
        assert_eq!(lattice.echelon([0, 1].into_iter()).unwrap(), 1);
        assert_eq!((lattice.value(0, &[3]).unwrap().abs(), lattice.value(1, &[3]).unwrap().abs()), (6, 3));
    }
}
