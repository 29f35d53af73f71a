//! Files that are there whole or not at all. Apart from the file itself, which programs include that have no tests.
use crate::new_file::{NewFile, write};
use hectare_testing::Folder;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

/// How many files are beside one.
fn beside(path: &str) -> usize {
    fs::read_dir(Path::new(path).parent().unwrap()).unwrap().count()
}

#[test]
fn an_old_file_is_replaced_only_by_a_complete_one() {
    let folder = Folder::new("new-file");
    let (path, taken) = (folder.write("state", "old"), folder.at("taken"));
    let mut left = NewFile::create(path.as_ref()).unwrap();
    left.write_all(b"half").unwrap();
    drop(left);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(beside(&path), 1, "a part was left behind");
    let mut new = NewFile::create(path.as_ref()).unwrap();
    new.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    new.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(beside(&path), 1);
    // A directory cannot be replaced by a file.
    fs::create_dir(&taken).unwrap();
    NewFile::create(taken.as_ref()).unwrap().finish().unwrap_err();
    assert_eq!(beside(&path), 2);
}

#[test]
fn links_devices_and_permissions_stay() {
    let folder = Folder::new("links");
    let (real, link, circle) = (folder.write("real", "old"), folder.at("link"), folder.at("circle"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real", &link).unwrap();
    write(link.as_ref(), "new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    // What a link leads to need not be there yet.
    fs::remove_file(&real).unwrap();
    write(link.as_ref(), "newer").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"newer");
    symlink("circle", &circle).unwrap();
    let refused = write(circle.as_ref(), "").unwrap_err();
    assert!(refused.to_string().contains("too many links"), "{refused}");
    // Of what is no regular file, a pipe stands here for devices.
    let pipe = folder.at("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
    write(pipe.as_ref(), "new").unwrap();
    let mut read = [0; 3];
    io::Read::read_exact(&mut reader, &mut read).unwrap();
    assert_eq!(&read, b"new");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    let full = write(Path::new("/dev/full"), "nothing").unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    // What somebody has open is written to where it is, and not by another file of its name.
    let opened = File::create(folder.at("opened")).unwrap();
    let at = std::os::fd::AsRawFd::as_raw_fd(&opened);
    write(Path::new(&format!("/proc/self/fd/{at}")), "seen").unwrap();
    assert_eq!((opened.metadata().unwrap().len(), beside(&real)), (4, 5));
}

/// Opens files until there may be no more. Not in a process that does anything else.
fn exhaust_files() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

const ROLE: &str = "HECTARE_NEW_FILE";

/// The process of the test below, with few files; nothing when the tests themselves run.
#[test]
fn role() {
    let Ok(path) = std::env::var(ROLE) else { return };
    let mut new = NewFile::create(path.as_ref()).unwrap();
    new.write_all(b"new").unwrap();
    let all = exhaust_files();
    assert!(!all.is_empty());
    new.finish().unwrap_err();
    drop(all);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(beside(&path), 1, "a part was left behind");
    write(path.as_ref(), "new").unwrap();
}

/// A directory that cannot be opened, to have the new name on the disk: the old file stays.
#[test]
fn an_old_file_is_not_replaced_when_that_fails() {
    let folder = Folder::new("no-directory");
    let path = folder.write("state", "old");
    let test = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new("sh");
    child.args(["-c", r#"ulimit -n 40 && exec "$0" new_file_tests::role --exact --nocapture"#]).arg(test);
    assert!(child.env(ROLE, &path).status().unwrap().success());
    assert_eq!(fs::read(&path).unwrap(), b"new");
}
