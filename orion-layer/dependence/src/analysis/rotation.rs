//! In which dimensions iterations may be spread over workers.
use super::{Dependence, Dependences};

/// Sets with more dimensions than this are not looked for in nests with more than 16 dimensions.
const LARGEST: u32 = 3;

impl Dependences {
    /// The smallest sets of dimensions of which every vector is zero in at least one: those without a smaller one
    /// inside, by size and then in lexicographic order. Iterations that differ in all dimensions of such a set never
    /// conflict, so that workers may hold different parts of all of them at every step: the rotation of an unordered
    /// loop (two dimensions: Gemulla et al. 2011; three: Beutel et al. 2014).
    ///
    /// The empty set alone if there is no dependence; nothing if some vector is never surely zero.
    ///
    /// # Examples
    /// ```
    /// use hectare_dependence::analysis::analyze;
    /// use hectare_dependence::loop_nest::*;
    /// // for (i, j) in ratings { u[i] and v[j] are updated }
    /// let var = |name: &str| LoopVar { name: name.into(), bounds: Some((0, 1000)) };
    /// let space = Space::Entries { array: "ratings".into(), count: 5000 };
    /// let mut nest = LoopNest::new("mf", Order::Unordered, space, vec![var("i"), var("j")]);
    /// for (array, name) in ["u", "v"].into_iter().enumerate() {
    ///     nest.arrays.push(NamedArray { name: name.into(), shape: vec![1000], element_bytes: 4 });
    ///     let subscripts = vec![Subscript::Index(Affine::var(array))];
    ///     nest.accesses.push(Access { array, subscripts, mode: Mode::Update, text: name.into(), line: 0 });
    /// }
    /// assert_eq!(analyze(&nest).rotation_sets(), [[0, 1]]);
    /// ```
    pub fn rotation_sets(&self) -> Vec<Vec<usize>> {
        let mut vectors: Vec<u64> = self.list.iter().map(zeros).collect();
        vectors.sort_unstable();
        vectors.dedup();
        let dims = self.dims.min(63);
        let largest = if dims > 16 { LARGEST } else { dims as u32 };
        let mut minimal: Vec<u64> = Vec::new();
        for size in 0..=largest {
            let before = minimal.len();
            choose(dims, size, 0, 0, &mut |set| {
                let new = minimal[..before].iter().all(|smaller| smaller & set != *smaller);
                if new && vectors.iter().all(|zeros| zeros & set != 0) {
                    minimal.push(set);
                }
            });
        }
        let members = |set: u64| (0..dims).filter(|k| set >> k & 1 != 0).collect();
        minimal.into_iter().map(members).collect()
    }
}

/// The dimensions where the vector is zero, as bits.
fn zeros(dependence: &Dependence) -> u64 {
    let bits = dependence.vector.iter().take(63).enumerate();
    bits.filter(|(_, distance)| distance.is_zero()).map(|(k, _)| 1 << k).sum()
}

/// Every set of `size` dimensions from `from` on, joined with `set`, in lexicographic order.
fn choose(dims: usize, size: u32, from: usize, set: u64, visit: &mut impl FnMut(u64)) {
    if size == 0 {
        return visit(set);
    }
    for k in from..dims {
        choose(dims, size - 1, k + 1, set | 1 << k, visit);
    }
}
