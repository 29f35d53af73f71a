#!/usr/bin/env bash
# Builds an archive of a release: programs, libhectare, headers, manual pages, completions, the service and the dashboard.
#
#   dist/release.sh [--out=target/dist] [--debug] [--no-build] [--check]
#
# --out       where the archive and its checksum go
# --debug     the unoptimized build
# --no-build  archives what `cargo build [--release] -p hectare-daemon -p hectare-ffi` has built
# --check     unpacks the archive elsewhere and uses it: programs, pages, and a C program with both libraries if there is cc
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/dist profile=release build=yes check=no
for option in "$@"; do
    case $option in
        --out=*) out=${option#*=} ;;
        --debug) profile=debug ;;
        --no-build) build=no ;;
        --check) check=yes ;;
        --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
        *) echo "release.sh: unknown option $option (--help lists them)" >&2; exit 2 ;;
    esac
done
target=${CARGO_TARGET_DIR:-target}
library=(--no-build "--target-dir=$PWD/$target")
[ "${target#/}" = "$target" ] || library=(--no-build "--target-dir=$target")
[ $profile = release ] || library+=(--debug)
if [ $build = yes ]; then
    flags=(--locked -p hectare-daemon -p hectare-ffi)
    [ $profile = debug ] || flags+=(--release)
    cargo build "${flags[@]}"
fi

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=hectare-$version-$(uname -m)-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name
share=$tree/share
mkdir -p "$tree/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
    "$share/fish/vendor_completions.d" "$share/hectare" "$share/doc/hectare"
for program in hectare hectared; do
    install -m755 "$target/$profile/$program" "$tree/bin/$program"
done
hectare=$tree/bin/hectare
"$hectare" man --out "$share/man/man1"
for of in hectare hectared; do
    daemon=()
    [ $of = hectare ] || daemon=(--daemon)
    "$hectare" completions bash "${daemon[@]}" >"$share/bash-completion/completions/$of"
    "$hectare" completions zsh "${daemon[@]}" >"$share/zsh/site-functions/_$of"
    "$hectare" completions fish "${daemon[@]}" >"$share/fish/vendor_completions.d/$of.fish"
done
install -m644 daemon/hectared.service dist/grafana-dashboard.json "$share/hectare/"
install -m644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$share/doc/hectare/"
ffi/install.sh "${library[@]}" --prefix=/usr/local "--destdir=$work/lib" >/dev/null
cp -a "$work/lib/usr/local/." "$tree/"
# The archive may be unpacked anywhere: like CMake's files, hectare.pc finds its own place.
sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$tree/lib/pkgconfig/hectare.pc"

mkdir -p "$out"
# The same bytes for the same content, whenever it is built.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
    -C "$work" -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
[ $check = yes ] || exit 0

(cd "$out" && sha256sum --quiet -c "$name.tar.gz.sha256")
there=$work/there
mkdir "$there"
tar -C "$there" -xzf "$out/$name.tar.gz"
there=$there/$name
[ "$("$there/bin/hectare" --version)" = "hectare $version" ]
[ "$("$there/bin/hectared" --version)" = "hectared $version" ]
for file in share/man/man1/hectare-run.1 share/man/man1/hectared.1 share/bash-completion/completions/hectared \
    share/zsh/site-functions/_hectare share/fish/vendor_completions.d/hectare.fish include/hectare/hectare.hpp \
    share/hectare/hectared.service share/doc/hectare/LICENSE-MIT; do
    [ -s "$there/$file" ] || { echo "release.sh: the archive lacks $file" >&2; exit 1; }
done
if command -v "${CC:-cc}" >/dev/null; then
    cat >"$work/check.c" <<'C'
#include <hectare/hectare.h>
int main(void)
{
    ha_job *job;
    return ha_job_embedded(NULL, &job) == HA_OK && ha_job_close(job) == HA_OK ? 0 : 1;
}
C
    "${CC:-cc}" "$work/check.c" -o "$work/shared" "-I$there/include" "-L$there/lib" -lhectare
    LD_LIBRARY_PATH=$there/lib "$work/shared"
    if command -v pkg-config >/dev/null; then
        read -ra flags < <(PKG_CONFIG_PATH=$there/lib/pkgconfig pkg-config --cflags --libs hectare)
        "${CC:-cc}" "$work/check.c" -o "$work/by-pkg-config" "${flags[@]}"
    fi
    "${CC:-cc}" "$work/check.c" -o "$work/static" "-I$there/include" "$there/lib/libhectare.a" -lpthread -ldl -lm
    "$work/static"
fi
echo "checked"
