//! Fewer vectors that stand for the same distances.
use super::distance::ZERO;
use super::vector::Exactness;
use super::{Dependence, Distance};

/// Joins vectors between the same two accesses that differ in one dimension, where the union is again a vector.
///
/// Nothing is lost for schedules: every such vector is zero in one of some dimensions exactly if both parts are.
/// Vectors with different leading dimensions stay apart, so that one still sees at which level a dependence is
/// carried; the zero vector joins any.
pub(super) fn merge(list: &mut Vec<Dependence>) {
    let dims = list.first().map_or(0, |dependence| dependence.vector.len());
    for k in (0..dims).rev() {
        let mut i = 0;
        while i < list.len() {
            let mut j = i + 1;
            while j < list.len() {
                match join(&list[i], &list[j], k) {
                    Some(joined) => {
                        list[i] = joined;
                        list.remove(j);
                        // Vectors that were passed over may fit now.
                        j = i + 1;
                    }
                    None => j += 1,
                }
            }
            i += 1;
        }
    }
}

fn join(a: &Dependence, b: &Dependence, k: usize) -> Option<Dependence> {
    let same = (a.source, a.sink, a.kind) == (b.source, b.sink, b.kind);
    let alike = |m: usize| a.vector[m] == b.vector[m];
    if !same || !(0..a.vector.len()).all(|m| m == k || alike(m)) {
        return None;
    }
    let leading = |d: &Dependence| d.vector.iter().position(|distance| !distance.is_zero());
    let (p, q) = (leading(a), leading(b));
    if p != q && p.is_some() && q.is_some() {
        return None;
    }
    let exact = |distance: Distance| matches!(distance, Distance::Exact(d) if d != 0);
    if exact(a.vector[k]) || exact(b.vector[k]) {
        return None;
    }
    let mut joined = a.clone();
    joined.vector[k] = Distance::of_signs(a.vector[k].signs() | b.vector[k].signs());
    for (extent, other) in joined.extents.iter_mut().zip(&b.extents) {
        extent.0 = extent.0.zip(other.0).map(|(a, b)| a.min(b));
        extent.1 = extent.1.zip(other.1).map(|(a, b)| a.max(b));
    }
    joined.exactness = match (a.exactness, b.exactness) {
        (Exactness::Points, Exactness::Points) => Exactness::Points,
        // If one part occurs, the vector does.
        (Exactness::Assumed, Exactness::Assumed) => Exactness::Assumed,
        _ => Exactness::Occurs,
    };
    Some(joined)
}

/// Component `k` of a cone as a distance.
pub(super) fn component(signs: u8, extent: (Option<i64>, Option<i64>)) -> Distance {
    match extent {
        (Some(low), Some(high)) if low == high && signs != ZERO => Distance::Exact(low),
        _ => Distance::of_signs(signs),
    }
}
