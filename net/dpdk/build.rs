//! Compiles the shim against the DPDK that the system has.

#[cfg(not(feature = "dpdk"))]
fn main() {}

#[cfg(feature = "dpdk")]
fn main() {
    for source in ["build.rs", "src/shim.c", "src/shim.h"] {
        println!("cargo::rerun-if-changed={source}");
    }
    // Only the folders are taken from pkg-config: it names every driver, and EAL finds drivers by itself.
    let found = pkg_config::Config::new().atleast_version("22.11").cargo_metadata(false).probe("libdpdk");
    let library = match found {
        Ok(library) => library,
        Err(error) => {
            println!(
                "cargo::error=the feature `dpdk` needs DPDK 22.11 or later, and pkg-config did not find it. \
                 On Debian and Ubuntu: apt-get install libdpdk-dev pkg-config. Or build without the feature \
                 (`--all-features` turns it on)."
            );
            for line in error.to_string().lines().filter(|line| !line.trim().is_empty()) {
                println!("cargo::warning={line}");
            }
            return;
        }
    };
    let mut build = cc::Build::new();
    build.file("src/shim.c").flag("-include").flag("rte_config.h").flag_if_supported("-Wno-deprecated");
    // Headers of DPDK: their warnings are not ours.
    for path in &library.include_paths {
        build.flag("-isystem").flag(path.to_str().expect("a folder of the system in UTF-8"));
    }
    // The least processor for which Debian builds DPDK; its headers use instructions of it.
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        build.flag("-march=corei7");
    }
    build.warnings(true).extra_warnings(true).warnings_into_errors(false).compile("hectare_dpdk_shim");
    for path in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for name in ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal"] {
        println!("cargo::rustc-link-lib=dylib={name}");
    }
}
