//! Whether the checks notice faults in the analysis.
use serde_json::Value;

use super::super::mutant::{self, Mutant};
use super::random::{Random, random_nest};
use super::{analyze, fixtures, oracle};

/// Whether the oracle notices the fault within so many random nests.
fn oracle_notices(mutant: Mutant, nests: u64) -> bool {
    (0..nests).any(|seed| {
        let nest = random_nest(&mut Random(seed));
        let conflicts = oracle::conflicts(&nest, seed);
        let found = mutant::with(mutant, || analyze(&nest));
        !oracle::missed(&found, &conflicts).is_empty()
            || !oracle::invented(&nest, &found, &conflicts).is_empty()
    })
}

/// Whether the comparison with isl notices the fault.
fn fixtures_notice(mutant: Mutant, lines: &[Value]) -> bool {
    mutant::with(mutant, || lines.iter().any(|line| fixtures::difference(line).is_some()))
}

#[test]
fn the_oracle_notices_every_fault() {
    for mutant in Mutant::ALL {
        assert!(oracle_notices(mutant, 2_000), "{mutant:?} survives");
    }
}

#[test]
fn the_fixtures_notice_every_fault_that_concerns_affine_nests() {
    // These concern what the fixtures do not contain: writes only, entries, unknown subscripts.
    let elsewhere =
        [Mutant::DroppedWritePair, Mutant::DroppedSelfPair, Mutant::DistinctEntries, Mutant::KnownUnknown];
    let lines = fixtures::lines();
    for mutant in Mutant::ALL {
        assert_eq!(fixtures_notice(mutant, &lines), !elsewhere.contains(&mutant), "{mutant:?}");
    }
}
