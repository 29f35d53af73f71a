//! The files of the examples: whole or not at all.
#[allow(dead_code)]
#[path = "../examples/training/whole_file.rs"]
mod whole_file;

use crate::common::program::program;
use hectare_testing::Folder;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn what_cannot_be_written_whole_leaves_the_old_file() {
    let folder = Folder::new("whole-file");
    let model = folder.write("model", "old");
    let full = |out: &mut dyn Write| {
        out.write_all(&[0; 100_000])?;
        Err(std::io::Error::from_raw_os_error(libc::ENOSPC))
    };
    let error = whole_file::write_by(Path::new(&model), full).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(fs::read_to_string(&model).unwrap(), "old");
    fs::set_permissions(&model, Permissions::from_mode(0o640)).unwrap();
    whole_file::write(Path::new(&model), "new").unwrap();
    assert_eq!(fs::read_to_string(&model).unwrap(), "new");
    assert_eq!(fs::metadata(&model).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(Path::new(&model).parent().unwrap()), 1, "a part was left behind");
}

#[test]
fn links_pipes_and_devices_stay_what_they_are() {
    let folder = Folder::new("whole-file-links");
    let [model, link, far, pipe] = ["model", "link", "far", "pipe"].map(|name| folder.at(name));
    symlink("model", &link).unwrap();
    symlink(&link, &far).unwrap();
    // Where a link leads to may not be there yet.
    for text in ["first", "second"] {
        whole_file::write(Path::new(&far), text).unwrap();
        assert_eq!(fs::read_to_string(&model).unwrap(), text);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&far).unwrap().is_symlink());
    }
    symlink("circle", folder.at("circle")).unwrap();
    whole_file::write(Path::new(&folder.at("circle")), "").unwrap_err();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    whole_file::write(Path::new(&pipe), "through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    whole_file::write(Path::new("/dev/null"), "nothing").unwrap();
    let error = whole_file::write(Path::new("/dev/full"), "nothing").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
}

#[test]
fn programs_replace_a_model_and_do_not_write_over_it() {
    let folder = Folder::new("whole-models");
    let rows: String = (1..60).map(|n| format!("{} {}:1 {}:{n}\n", n % 2, 1 + n % 3, 4 + n % 2)).collect();
    let text = (0..60)
        .map(|n| format!("sea ship sail wave port tree {} rose lily acorn maple birch\n", ["x", "y"][n % 2]));
    let (rows, text) = (folder.write("rows", &rows), folder.write("text", &text.collect::<String>()));
    let (model, saved) = (folder.at("model"), folder.at("saved"));
    let of_rows = ["--data", &rows, "--save", &model];
    let of_text = ["--text", &text, "--lines", "--min-count", "1", "--passes", "1", "--save"];
    let cases: [(&str, Vec<&str>, &[&str]); 5] = [
        ("sparse_lr", [&of_rows[..], &["--test", &rows, "--passes", "1"]].concat(), &["model"]),
        ("gbt", [&of_rows[..], &["--test", &rows, "--trees", "2"]].concat(), &["model"]),
        ("lasso", of_rows.to_vec(), &["model"]),
        ("word2vec", [&of_text[..], &[&model, "--dimension", "4"]].concat(), &["model"]),
        (
            "lda",
            [&of_text[..], &[&saved, "--topics", "2", "--skip-top", "0"]].concat(),
            &["saved/topics.npy", "saved/vocabulary.txt", "saved/tokens.npy", "saved/training.json"],
        ),
    ];
    let old = folder.at("old");
    let inode = |path: &str| fs::metadata(path).unwrap().ino();
    for (name, args, files) in cases {
        for file in files.iter().map(|file| folder.at(file)) {
            let run = || {
                let output = program(name, &[&args[..], &["--workers", "1", "--quiet"]].concat());
                assert!(output.status.success(), "{name}: {output:?}");
            };
            run();
            // A second name of the old file: its number is not given to the next.
            fs::hard_link(&file, &old).unwrap();
            run();
            assert_ne!(inode(&file), inode(&old), "{name}: {file} was written over");
            fs::remove_file(&old).unwrap();
        }
    }
}
