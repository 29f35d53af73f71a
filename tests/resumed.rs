//! Checkpoints of the example `factorize`: which runs go on from one.
use crate::common::program::{program, refuses};
use hectare_testing::Folder;
use std::fs;

#[test]
fn a_checkpoint_of_another_run_is_refused_and_stays() {
    let folder = Folder::new("resumed");
    let text: String =
        (0..3000u32).map(|n| format!("{} {} {}\n", n * 7919 % 60, n * 104_729 % 41, 1 + n % 5)).collect();
    let (train, saved) = (folder.write("train", &text), folder.at("saved"));
    let other = folder.write("other", &text.replacen("0 0 1\n", "0 0 2\n", 1));
    let larger = folder.write("larger", &(text + "60 40 3\n"));
    let with = |data: &str, more: &str| -> Vec<String> {
        let always = ["--quiet", "--workers", "2", "--train", data, "--test", &train, "--checkpoint", &saved];
        always.into_iter().chain(more.split(' ')).map(str::to_owned).collect()
    };
    let run = |args: Vec<String>| {
        let output = program("factorize", &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(with(&train, "--rank 8 --passes 2"));
    let before = fs::read(&saved).unwrap();
    let cases = [
        (&train, "--rank 8 --seed 2", "a run with --seed 1, and this run has 2: run with the same"),
        (&train, "--rank 16", "--rank 8, and this run has 16"),
        (&train, "--rank 8 --steps fixed", "--steps adaptive, and this run has fixed"),
        (&train, "--rank 8 --steps ada-revision", "not with --steps ada-revision"),
        (&other, "--rank 8", "other entries of the same shape"),
        (&larger, "--rank 8", "entries in 60 rows and 41 columns, and this run has 61 rows"),
    ];
    for (data, more, says) in cases {
        let args = with(data, more);
        refuses("factorize", &[(&args.iter().map(String::as_str).collect::<Vec<_>>(), says)]);
    }
    assert_eq!(fs::read(&saved).unwrap(), before);
    let said = run(with(&train, "--rank 8 --passes 2"));
    assert!(said.contains("nothing left to learn: the checkpoint is of pass 2 (--passes 2)"), "{said}");
    assert!(run(with(&train, "--rank 8 --passes 3")).contains("test RMSE"));
}
