#!/usr/bin/env bash
# Measures the curves of docs/src/images: each program seven times, all its modes in turns. Nothing else should run.
#
#     cargo build --release --example factorize --example sparse_lr
#     docs/data/measure.sh [RATINGS TEST]      # files of MovieLens-1M, as docs/src/benchmarks.md describes them
#     cargo run -p hectare-docs                # draws the pictures
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=${PROGRAMS:-target/release/examples}
once=$(mktemp --suffix .csv)
trap 'rm -f "$once"' EXIT

# repeated FILE PROGRAM [ARGUMENT..]: the curves of seven runs, each line with the number of its run.
repeated() {
    local file=$1 run
    shift
    for run in 1 2 3 4 5 6 7; do
        "$programs/$1" "${@:2}" --all --workers 1,2 --quiet --curve "$once" >/dev/null
        awk -v run="$run" 'NR == 1 { if (run == 1) print "repeat," $0; next } { print run "," $0 }' "$once"
    done >"docs/data/$file"
}

repeated mf.csv factorize --passes 12
repeated lr.csv sparse_lr --rule sgd --passes 8
if [ $# -eq 2 ]; then
    repeated mf-ml1m.csv factorize --passes 12 --train "$1" --test "$2"
fi
