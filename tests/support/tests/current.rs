//! Which programs count as built after their sources.
use hectare_testing::is_current;
use std::path::Path;

#[test]
fn this_test_is_newer_than_its_sources() {
    let test = std::env::current_exe().unwrap();
    assert!(is_current(&test, &["tests/support"]));
}

#[test]
fn what_is_absent_or_older_is_not_current() {
    assert!(!is_current(Path::new("no/such/program"), &["tests/support"]));
    // Nothing says how old a crate is that is not there.
    let test = std::env::current_exe().unwrap();
    assert!(!is_current(&test, &["no-such-crate"]));
    let old = std::env::temp_dir().join(format!("hectare-current-{}", std::process::id()));
    let file = std::fs::File::create(&old).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let current = is_current(&old, &["tests/support"]);
    std::fs::remove_file(&old).unwrap();
    assert!(!current);
}
