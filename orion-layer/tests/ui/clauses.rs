//! Arrays under clauses that are not for them.
use hectare_orion::collections::{DistMap, DistVec, Last};
use hectare_orion::relax::{Buffered, Sum};
use hectare_orion::serve::Served;
use hectare_orion::{Context, DistArray, SparseArray, parallel_for};

fn program(
    w: &mut Context<'_>,
    mut plain: DistArray<f64, 1>,
    buffered: &mut Buffered<f64, 1, Sum>,
    served: &mut Served<f64, 1, Sum>,
    map: &mut DistMap<u32, u32, Last>,
    list: &mut DistVec<u32>,
    sparse: &SparseArray<f64, 2>,
) {
    let _ = parallel_for!(w, unordered, buffer plain; for i in 0..9 { plain.add(i, 1.0); });
    let _ = parallel_for!(w, unordered, serve plain; for i in 0..9 { plain.add(i, 1.0); });
    let _ = parallel_for!(w, unordered, relax buffered; for i in 0..9 { buffered.add(i, 1.0); });
    let _ = parallel_for!(w, unordered, serve buffered; for i in 0..9 { buffered.add(i, 1.0); });
    let _ = parallel_for!(w, unordered, write buffered; for i in 0..9 { buffered[i] = 1.0; });
    let _ = parallel_for!(w, unordered, relax served; for i in 0..9 { served.add(i, 1.0); });
    let _ = parallel_for!(w, unordered, buffer served; for i in 0..9 { served.add(i, 1.0); });
    let _ = parallel_for!(w, unordered, write map; for i in 0..9 { map[i] = 1; });
    let _ = parallel_for!(w, unordered, relax list; for i in 0..9 { list.add(i, 1); });
    let numbers = vec![1.0; 9];
    let _ = parallel_for!(w, unordered, read numbers, write plain; for i in 0..9 { plain[i] = numbers[i]; });
    let _ = parallel_for!(w, unordered, write plain; for ((i), x) in numbers { plain[i] = *x; });
    let _ = parallel_for!(w, unordered, read sparse, write plain; for i in 0..9 { plain[i] = sparse[i]; });
}

fn main() {}
