//! Each of the variables, in a process of its own.
use std::process::{Command, Output};

/// Runs the test below in a process of its own with these variables.
fn skipping(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "lacks_a_unicorn", "--include-ignored", "--nocapture"]);
    for name in ["HECTARE_SKIPS", "HECTARE_NO_SKIP", "HECTARE_MAY_SKIP"] {
        command.env_remove(name);
    }
    command.env("LACKS", "1").envs(variables.iter().copied()).output().unwrap()
}

/// The test that those below run in a process of its own; by itself it has nothing to do.
#[test]
fn lacks_a_unicorn() {
    if std::env::var_os("LACKS").is_some() {
        hectare_testing::skip("unicorn", "none came\nby");
    }
}

#[test]
fn a_skip_is_said_and_passes() {
    let output = skipping(&[]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("lacks_a_unicorn: skipped, no unicorn: none came"), "{said}");
}

#[test]
fn no_skip_makes_it_a_failure() {
    assert!(!skipping(&[("HECTARE_NO_SKIP", "1")]).status.success());
    assert!(!skipping(&[("HECTARE_NO_SKIP", "1"), ("HECTARE_MAY_SKIP", "horse,uni")]).status.success());
    assert!(skipping(&[("HECTARE_NO_SKIP", "1"), ("HECTARE_MAY_SKIP", "horse,unicorn")]).status.success());
    assert!(skipping(&[("HECTARE_NO_SKIP", "0")]).status.success());
}

#[test]
fn skips_are_listed_in_a_file_a_line_each() {
    let file = std::env::temp_dir().join(format!("hectare-skips-{}", std::process::id()));
    for _ in 0..2 {
        assert!(skipping(&[("HECTARE_SKIPS", file.to_str().unwrap())]).status.success());
    }
    let text = std::fs::read_to_string(&file);
    std::fs::remove_file(&file).unwrap();
    let line = "lacks_a_unicorn: skipped, no unicorn: none came by\n";
    assert_eq!(text.unwrap(), line.repeat(2));
}
