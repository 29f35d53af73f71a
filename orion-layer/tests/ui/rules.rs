//! Rules that are not for what they are given to.
use hectare_orion::collections::{self, Append};
use hectare_orion::relax::{self, AdaGrad};
use hectare_orion::{Context, DistArray};

fn program(w: &mut Context<'_>, a: DistArray<u64, 1>, b: DistArray<u64, 1>) {
    let _ = w.dist_map::<String, u64, _>(relax::Sum);
    let _ = w.dist_map::<String, u64, _>(Append);
    let _ = w.dist_map::<String, u64, _>(|sum: &mut u64, later: u32| *sum += u64::from(later));
    let _ = w.buffered(a, collections::Sum);
    let _ = w.served(b, AdaGrad::new(0.5));
}

fn main() {}
