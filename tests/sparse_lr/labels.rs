//! Labels of files: any two, which the test file has to have, too.
use super::{Examples, losses, options, sparse_lr};
use crate::common::program::{program, refuses};
use hectare::orion::relax::Consistency;
use sparse_lr::{serial, train};
use std::fs;

/// The same file with other labels for -1 and +1.
fn relabelled(of: &Examples, name: &str, labels: [&str; 2]) -> Examples {
    let text = fs::read_to_string(of.path()).unwrap();
    let line = |line: &str| match line.split_at(2) {
        ("-1", rest) => format!("{}{rest}\n", labels[0]),
        ("+1", rest) => format!("{}{rest}\n", labels[1]),
        (other, _) => panic!("label {other}"),
    };
    Examples::of(name, &text.lines().map(line).collect::<String>())
}

#[test]
fn any_two_labels_are_learned_alike() {
    let signs = [Examples::write("signs", 0..500), Examples::write("signs-test", 500..700)];
    let run = |files: [&str; 2]| {
        let o = options(&["--data", files[0], "--test", files[1]]);
        // Of one worker, whose sums are always the same.
        let worker = hectare::run(1, |w| train(w, &o, Consistency::Bsp)).unwrap().swap_remove(0);
        [losses(&serial(&o).unwrap()), losses(&worker)]
    };
    let expected = run([signs[0].path(), signs[1].path()]);
    for (name, labels) in
        [("ones", ["0", "1"]), ("twos", ["1", "2"]), ("far", ["-7.5", "-3"]), ("above", ["+1", "2e3"])]
    {
        let files = [0, 1].map(|file| relabelled(&signs[file], &format!("{name}-{file}"), labels));
        assert_eq!(run([files[0].path(), files[1].path()]), expected, "{labels:?}");
    }
}

#[test]
fn which_label_is_positive_is_said_where_it_is_not_plain() {
    let signs = Examples::write("plain", 0..50);
    for (labels, told) in [(["-1", "+1"], None), (["0", "1"], None), (["2", "4"], Some("2 is the negative"))]
    {
        let file = relabelled(&signs, &format!("told-{}", labels[0]), labels);
        let output = program("sparse_lr", &["--data", file.path(), "--passes", "1", "--workers", "1"]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert_eq!(told.is_some(), said.contains("negative"), "{said}");
        assert!(told.is_none_or(|told| said.contains(told)), "{said}");
    }
}

#[test]
fn labels_that_cannot_be_learned_are_named() {
    let two = Examples::of("two", "1 1:1\n2 2:1\n");
    let alone = Examples::of("alone", "7 1:1\n7 2:1\n");
    let three = Examples::of("three", "1 1:1\n3 2:1\n2 3:1\n");
    let many = Examples::of("many", &(1..20).map(|label| format!("{label} 1:1\n")).collect::<String>());
    let other = Examples::of("other", "1 1:1\n2 2:1\n\n-1 2:1\n");
    let empty = Examples::of("empty", "\n# nothing\n");
    for way in [&["--serial"][..], &["--workers", "1"], &["--workers", "3"]] {
        let says = |args: &[&str], says: &str| refuses("sparse_lr", &[(&[way, args].concat(), says)]);
        says(&["--data", alone.path()], &format!("{}: all examples have the label 7", alone.path()));
        says(&["--data", three.path()], &format!("{} has the labels 1, 2, 3, and", three.path()));
        says(&["--data", many.path()], "and others");
        let place = format!("{}:4: the label -1 is none of those learned, which are 1 and 2", other.path());
        says(&["--data", two.path(), "--test", other.path()], &place);
        says(&["--data", empty.path()], &format!("{} has no examples to learn from", empty.path()));
        let nothing = format!("{} has no examples to test with", empty.path());
        says(&["--data", two.path(), "--test", empty.path()], &nothing);
    }
}
