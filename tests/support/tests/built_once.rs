//! A program that several tests build alike.
use hectare_testing::{Folder, built_once};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn written(text: &'static str) -> impl FnOnce(&Path) {
    move |path| std::fs::write(path, text).unwrap()
}

#[test]
fn it_is_built_if_it_is_not_there_or_older_than_a_source() {
    let directory = Folder::new("built-older");
    let (program, source) = (PathBuf::from(directory.at("program")), PathBuf::from(directory.at("source.c")));
    let set = |time| File::create(&source).unwrap().set_modified(time).unwrap();
    set(SystemTime::UNIX_EPOCH);
    let sources = [source.clone()];
    let text = || std::fs::read_to_string(&program).unwrap();
    built_once(&program, &sources, written("first"));
    assert_eq!(text(), "first");
    built_once(&program, &sources, |_| panic!("it is there"));
    set(SystemTime::now() + Duration::from_secs(5));
    built_once(&program, &sources, written("second"));
    assert_eq!(text(), "second");
}

#[test]
fn who_comes_meanwhile_waits_for_it() {
    let directory = Folder::new("built-meanwhile");
    let program = PathBuf::from(directory.at("program"));
    let (send, started) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            built_once(&program, &[], |path| {
                send.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(200));
                std::fs::write(path, "whole").unwrap();
            });
        });
        started.recv().unwrap();
        built_once(&program, &[], |_| panic!("another builds it"));
    });
    assert_eq!(std::fs::read_to_string(&program).unwrap(), "whole");
}

#[test]
fn a_build_that_fails_leaves_no_program() {
    let directory = Folder::new("built-fails");
    let program = PathBuf::from(directory.at("program"));
    let failed = std::panic::catch_unwind(|| {
        built_once(&program, &[], |path| {
            std::fs::write(path, "half").unwrap();
            panic!("the compiler fails");
        });
    });
    assert!(failed.is_err() && !program.exists());
    built_once(&program, &[], written("whole"));
    assert_eq!(std::fs::read_to_string(&program).unwrap(), "whole");
}
