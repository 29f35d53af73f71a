//! `install.sh` into a temporary prefix, and programs against what it installed: by hand, by pkg-config and by CMake,
//! in C and in C++, with the shared and with the static library.
mod common;

use common::{WARNINGS, has, library, program, root, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const C: &str = r#"#include <hectare/hectare.h>
#include <stdio.h>
int main(void)
{
    ha_job *job;
    ha_worker *worker;
    ha_area *area;
    if (ha_check_abi(HA_ABI_VERSION) != HA_OK || ha_job_embedded(NULL, &job) != HA_OK ||
        ha_worker_join(job, &worker) != HA_OK || ha_area_create(worker, "a", HA_F64, 100, NULL, &area) != HA_OK ||
        ha_log(area, 5, 1) != HA_OK || ha_sync(worker, NULL) != HA_OK)
        return printf("%s\n", ha_last_error()), 1;
    ha_worker_leave(worker);
    ha_job_close(job);
    return printf("installed\n") < 0;
}
"#;

const CPP: &str = r#"#include <hectare/hectare.hpp>
#include <cstdio>
int main()
{
    auto job = hectare::job::embedded();
    job.run(2, [](hectare::worker &worker) { worker.barrier(); });
    std::puts("installed");
}
"#;

struct Installed {
    prefix: PathBuf,
    work: PathBuf,
    _directory: tempfile::TempDir,
}

/// Installs once: into the place that a package would be made of, from where it is moved to its prefix.
fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (prefix, stage, work) = (base.join("prefix"), base.join("stage"), base.join("work"));
        std::fs::create_dir(&work).unwrap();
        install(&prefix, &stage, &[]);
        let staged = stage.join(prefix.strip_prefix("/").unwrap());
        std::fs::rename(staged, &prefix).unwrap();
        std::fs::write(work.join("main.c"), C).unwrap();
        std::fs::write(work.join("main.cc"), CPP).unwrap();
        Installed { prefix, work, _directory: directory }
    })
}

fn install(prefix: &Path, stage: &Path, more: &[&str]) {
    let profile = library();
    let mut install = Command::new(root().join("install.sh"));
    install.arg(format!("--prefix={}", prefix.display())).arg(format!("--destdir={}", stage.display()));
    install.arg("--no-build").arg(format!("--target-dir={}", profile.parent().unwrap().display()));
    if profile.ends_with("debug") {
        install.arg("--debug");
    }
    run(install.args(more));
}

/// Runs a program that was built; it says that it works.
#[track_caller]
fn works(built: &Path, place: &Installed) {
    let mut command = program(built, &place.work);
    let out = run(command.env("LD_LIBRARY_PATH", place.prefix.join("lib")));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "installed\n");
}

#[test]
fn the_files_are_where_they_belong() {
    let place = installed();
    let lib = place.prefix.join("lib");
    assert_eq!(std::fs::read_link(lib.join("libhectare.so")).unwrap(), Path::new("libhectare.so.0"));
    let version = env!("CARGO_PKG_VERSION");
    let real = std::fs::read_link(lib.join("libhectare.so.0")).unwrap();
    assert_eq!(real, PathBuf::from(format!("libhectare.so.{version}")));
    for file in ["lib/libhectare.a", "include/hectare/hectare.h", "include/hectare/hectare.hpp"] {
        assert!(place.prefix.join(file).is_file(), "{file}");
    }
    // Nothing names the place where a package was put together.
    for file in ["lib/pkgconfig/hectare.pc", "lib/cmake/hectare/hectare-config.cmake"] {
        let text = std::fs::read_to_string(place.prefix.join(file)).unwrap();
        assert!(!text.contains("/stage") && !text.contains('@'), "{file}:\n{text}");
    }
    let out = run(Command::new("readelf").arg("-d").arg(lib.join("libhectare.so")));
    assert!(String::from_utf8_lossy(&out.stdout).contains("soname: [libhectare.so.0]"));
}

#[test]
fn what_is_uninstalled_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let stage = directory.path().join("stage");
    install(Path::new("/opt/h"), &stage, &["--libdir=/opt/h/lib/x86_64-linux-gnu"]);
    let lib = stage.join("opt/h/lib/x86_64-linux-gnu");
    let config = std::fs::read_to_string(lib.join("cmake/hectare/hectare-config.cmake")).unwrap();
    assert!(config.contains("/../../../..\" ABSOLUTE"), "{config}");
    install(Path::new("/opt/h"), &stage, &["--libdir=/opt/h/lib/x86_64-linux-gnu", "--uninstall"]);
    let left = run(Command::new("find").arg(&stage).args(["-type", "f", "-o", "-type", "l"]));
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn by_hand() {
    let place = installed();
    for (compiler, source) in [("cc", "main.c"), ("c++", "main.cc")] {
        if !has(compiler) {
            continue;
        }
        let built = place.work.join(format!("hand-{compiler}"));
        let mut command = Command::new(compiler);
        command.args(WARNINGS).arg("-I").arg(place.prefix.join("include")).arg(place.work.join(source));
        command.arg("-L").arg(place.prefix.join("lib")).args(["-lhectare", "-o"]).arg(&built);
        run(&mut command);
        works(&built, place);
    }
}

#[test]
fn by_pkg_config() {
    let place = installed();
    if !has("pkg-config") {
        return;
    }
    for kind in ["shared", "static"] {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", place.prefix.join("lib/pkgconfig")).args(["--cflags", "--libs"]);
        if kind == "static" {
            command.arg("--static");
        }
        let out = run(command.arg("hectare = 0.1.0"));
        let flags = String::from_utf8(out.stdout).unwrap();
        for (compiler, source) in [("cc", "main.c"), ("c++", "main.cc")] {
            if !has(compiler) {
                continue;
            }
            let built = place.work.join(format!("pkg-{kind}-{compiler}"));
            let mut command = Command::new(compiler);
            command.arg(place.work.join(source)).arg("-o").arg(&built);
            let library = place.prefix.join("lib/libhectare.a");
            for flag in flags.split_whitespace() {
                match (kind, flag) {
                    ("static", "-lhectare") => command.arg(&library),
                    (_, other) => command.arg(other),
                };
            }
            run(&mut command);
            works(&built, place);
        }
    }
}

#[test]
fn by_cmake() {
    let place = installed();
    if !has("cmake") {
        return;
    }
    let source = place.work.join("cmake");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(
        source.join("CMakeLists.txt"),
        "cmake_minimum_required(VERSION 3.13)\n\
         project(user C CXX)\n\
         set(CMAKE_CXX_STANDARD 17)\n\
         find_package(hectare 0.1 REQUIRED CONFIG)\n\
         foreach(kind hectare static)\n\
             add_executable(c-${kind} ../main.c)\n\
             target_link_libraries(c-${kind} PRIVATE hectare::${kind})\n\
             add_executable(cpp-${kind} ../main.cc)\n\
             target_link_libraries(cpp-${kind} PRIVATE hectare::${kind})\n\
         endforeach()\n\
         find_package(hectare 0.2 QUIET CONFIG)\n\
         if(hectare_FOUND)\n\
             message(FATAL_ERROR \"0.1 is not 0.2\")\n\
         endif()\n",
    )
    .unwrap();
    let build = place.work.join("cmake-build");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&source).arg("-B").arg(&build);
    run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", place.prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    for name in ["c-hectare", "cpp-hectare", "c-static", "cpp-static"] {
        works(&build.join(name), place);
    }
}
