use hectare_orion::accumulate::{Accumulators, Sum};

fn run<C: Accumulators>(_: C) {}

fn main() {
    let sum = Sum::<u64>::new();
    run((sum, sum, sum, sum));
    run((sum, sum, sum, sum, sum));
    run(sum);
    run((sum, 3));
}
