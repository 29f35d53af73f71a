//! Which iterations of a loop depend on which others: so far only by comparing subscripts of one variable.
#![allow(missing_docs)]
use crate::loop_nest::*;
#[derive(Debug, Clone)]
pub struct Dependences {
    pub list: Vec<Dependence>,
    n: usize,
}
#[derive(Debug, Clone)]
pub struct Dependence {
    pub array: usize,
    pub source: usize,
    pub sink: usize,
    pub vector: Vec<Distance>,
}
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distance {
    Exact(i64),
    Any,
}
impl Dependence {
    pub fn describe(&self, nest: &LoopNest) -> String {
        format!("{} and {}", nest.accesses[self.source].text, nest.accesses[self.sink].text)
    }
}
impl Dependences {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    pub fn rotation_sets(&self) -> Vec<Vec<usize>> {
        let mut out = vec![];
        for m in 1u32..1 << self.n {
            let s: Vec<usize> = (0..self.n).filter(|d| m >> d & 1 == 1).collect();
            let ok = |s: &Vec<usize>| {
                self.list.iter().all(|v| s.iter().any(|d| v.vector[*d] == Distance::Exact(0)))
            };
            if ok(&s)
                && !(0..s.len()).any(|k| {
                    let mut t = s.clone();
                    t.remove(k);
                    ok(&t)
                })
            {
                out.push(s)
            }
        }
        out
    }
}
pub fn analyze(nest: &LoopNest) -> Dependences {
    let mut list = vec![];
    for (a, x) in nest.accesses.iter().enumerate() {
        for (b, y) in nest.accesses.iter().enumerate().skip(a) {
            if x.array != y.array || !(x.mode.writes() || y.mode.writes()) {
                continue;
            }
            let mut v = vec![Distance::Any; nest.dims.len()];
            for (s, t) in x.subscripts.iter().zip(&y.subscripts) {
                if let (Subscript::Index(s), Subscript::Index(t)) = (s, t) {
                    if s.coefficients == t.coefficients {
                        let nz: Vec<usize> =
                            (0..s.coefficients.len()).filter(|k| s.coefficients[*k] != 0).collect();
                        if nz.len() == 1 && nz[0] < v.len() && s.coefficients[nz[0]] == 1 {
                            v[nz[0]] = Distance::Exact(s.constant - t.constant)
                        }
                    }
                }
            }
            if !v.iter().all(|d| *d == Distance::Exact(0)) {
                list.push(Dependence { array: x.array, source: a, sink: b, vector: v })
            }
        }
    }
    Dependences { list, n: nest.dims.len() }
}
