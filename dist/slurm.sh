#!/usr/bin/env bash
# A program of Hectare on the nodes that SLURM allocates:
#
#   sbatch --nodes=2 --ntasks-per-node=2 dist/slurm.sh PROGRAM [ARGUMENT..]
#
# hectare and hectared have to be in PATH on the nodes, and the cluster's key (hectare key new) in the home directory, which
# they share. Each node gets a daemon of this job's own, in a run directory that only this node sees.
#SBATCH --job-name=hectare
set -euo pipefail
[ $# -gt 0 ] || { echo "slurm.sh: which program?" >&2; exit 2; }

export HECTARE_RUN_DIR=/tmp/hectare-$UID-$SLURM_JOB_ID
on_each_node=(srun --ntasks-per-node=1 --ntasks="$SLURM_NNODES" --overlap)
# Runs until its standard input ends, or SLURM ends it (scancel, a time limit), and takes the run directory along. The first wait may
# be interrupted by the signal.
daemon='trap : TERM
hectared <&- &
cat >/dev/null || true
kill $! 2>/dev/null; wait $!; wait $!
rm -rf -- "$HECTARE_RUN_DIR"'
exec {open}> >(HECTARE_LOG=${HECTARE_LOG:-warn} exec "${on_each_node[@]}" bash -c "$daemon")
daemons=$!
trap 'exec {open}>&-; wait $daemons || true' EXIT
# Until all of them are there.
for _ in $(seq 60); do
    "${on_each_node[@]}" hectare ping >/dev/null 2>&1 {open}>&- </dev/null && break
    sleep 1
done

hectare run --slurm -- "$@" {open}>&- </dev/null
