#!/bin/sh
# Builds and installs libhectare: the shared and the static library, the headers, hectare.pc and the CMake package.
# Needs cargo and a C compiler, nothing else.
#
#   ffi/install.sh [--prefix=/usr/local] [--destdir=DIR] [--libdir=PREFIX/lib] [--includedir=PREFIX/include]
#                  [--debug] [--no-build] [--target-dir=DIR] [--uninstall]
#
# --destdir      puts everything below DIR, for packagers; nothing in the files names it
# --debug        the unoptimized build
# --no-build     installs what `cargo build [--release] -p hectare-ffi` has built
# --target-dir   where cargo builds (default: CARGO_TARGET_DIR, or target)
# --uninstall    removes what would be installed
#
# CC, CARGO: the compiler and cargo to use.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local destdir= libdir= includedir= profile=release build=yes remove=no
target=${CARGO_TARGET_DIR:-$here/../target}
for option in "$@"; do
    case $option in
        --prefix=*) prefix=${option#*=} ;;
        --destdir=*) destdir=${option#*=} ;;
        --libdir=*) libdir=${option#*=} ;;
        --includedir=*) includedir=${option#*=} ;;
        --target-dir=*) target=${option#*=} ;;
        --debug) profile=debug ;;
        --no-build) build=no ;;
        --uninstall) remove=yes build=no ;;
        --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
        *) echo "install.sh: unknown option $option (--help lists them)" >&2; exit 2 ;;
    esac
done
case $prefix in
    /*) ;;
    *) echo "install.sh: --prefix has to be an absolute path, not $prefix" >&2; exit 2 ;;
esac
libdir=${libdir:-$prefix/lib}
includedir=${includedir:-$prefix/include}
for directory in "$libdir" "$includedir"; do
    case $directory in
        "$prefix"/*) ;;
        *) echo "install.sh: $directory does not lie in the prefix $prefix" >&2; exit 2 ;;
    esac
done

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml")
major=${version%%.*} rest=${version#*.}
minor=${rest%%.*}
# The number in the soname: HA_ABI_VERSION / 1000.
abi=$(sed -n 's/^pub const HA_ABI_VERSION: u32 = \([0-9_]*\);/\1/p' "$here/src/version.rs" | tr -d _)
soversion=$((abi / 1000))

lib=$destdir$libdir include=$destdir$includedir/hectare
pkgconfig=$lib/pkgconfig cmake=$lib/cmake/hectare
if [ $remove = yes ]; then
    rm -f "$lib/libhectare.a" "$lib/libhectare.so" "$lib/libhectare.so.$soversion" "$lib/libhectare.so.$version"
    rm -f "$include/hectare.h" "$include/hectare.hpp" "$pkgconfig/hectare.pc"
    rm -f "$cmake/hectare-config.cmake" "$cmake/hectare-config-version.cmake"
    rmdir "$include" "$cmake" 2>/dev/null || true
    exit 0
fi

if [ $build = yes ]; then
    release=--release
    [ $profile = release ] || release=
    # shellcheck disable=SC2086
    ${CARGO:-cargo} build $release -p hectare-ffi --manifest-path "$here/Cargo.toml" --target-dir "$target"
fi
archive=$target/$profile/libhectare.a
if [ ! -f "$archive" ]; then
    echo "install.sh: there is no $archive: leave out --no-build" >&2
    exit 1
fi

# What the static library needs of the system.
private="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"

mkdir -p "$lib" "$include" "$pkgconfig" "$cmake"
install -m 644 "$archive" "$lib/libhectare.a"
# The shared library is linked out of the static one, since rustc has no room for a version script of ours.
${CC:-cc} -shared -o "$lib/libhectare.so.$version" \
    -Wl,-soname,"libhectare.so.$soversion" -Wl,--version-script="$here/package/hectare.map" \
    -Wl,--gc-sections -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive $private
chmod 755 "$lib/libhectare.so.$version"
ln -sf "libhectare.so.$version" "$lib/libhectare.so.$soversion"
ln -sf "libhectare.so.$soversion" "$lib/libhectare.so"
install -m 644 "$here/include/hectare/hectare.h" "$here/include/hectare/hectare.hpp" "$include/"

rel_libdir=${libdir#"$prefix"/} rel_includedir=${includedir#"$prefix"/}
# From libdir/cmake/hectare back to the prefix.
up=../../$(printf %s "$rel_libdir" | sed 's|[^/][^/]*|..|g')
fill() {
    sed -e "s|@prefix@|$prefix|g" -e "s|@libdir@|\${prefix}/$rel_libdir|g" \
        -e "s|@includedir@|\${prefix}/$rel_includedir|g" -e "s|@version@|$version|g" \
        -e "s|@soversion@|$soversion|g" -e "s|@major@|$major|g" -e "s|@minor@|$minor|g" \
        -e "s|@rel_libdir@|$rel_libdir|g" -e "s|@rel_includedir@|$rel_includedir|g" -e "s|@up@|$up|g" \
        -e "s|@private@|$private|g" "$here/package/$1.in" >"$2/$1"
}
fill hectare.pc "$pkgconfig"
fill hectare-config.cmake "$cmake"
fill hectare-config-version.cmake "$cmake"
echo "installed libhectare $version in $destdir$prefix"
