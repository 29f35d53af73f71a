//! DPDK's environment starts once in a process. So this file has one test.
#![cfg(feature = "dpdk")]
use hectare_dpdk::{Eal, Error};

#[test]
fn an_environment_that_does_not_start_says_why() {
    let arguments =
        ["--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--lcores", "nonsense"].map(String::from);
    let error = Eal::start(&arguments).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Start { .. }) && text.contains("--lcores nonsense"), "{text}");
    assert!(text.contains("DPDK says: "), "{text}");
    // It is the same later, and for everybody.
    assert_eq!(Eal::start(&arguments).unwrap_err(), error);
    assert_eq!(Eal::start_by_default("net_null0").unwrap_err(), error);
}
