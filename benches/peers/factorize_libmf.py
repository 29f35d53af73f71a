r"""LIBMF's `mf-train` and ours in turn: seconds of training to a test RMSE, or of a pass over skewed ratings.

    cargo build --release --example factorize
    python3 factorize_libmf.py --mf-train mf-train --program target/release/examples/factorize \
        (--train FILE --test FILE [--target 0.8463] | --zipf) [--threads 1 2] [--rounds 5] [--disturb 0]

It builds nothing. FILEs have lines `row column value`. `--zipf` generates 5 M ratings of 200,000 rows and 20,000 columns whose ranks
have frequencies proportional to 1 / rank^1.2. `--disturb CORE` runs a program that does nothing but compute on that core meanwhile.
What is read, and what is tested, does not count. `mf-train` says nothing of time: lines of its iterations are timed as they
come, without a test file, and what was before the first is taken to be as long as the others. Ours counts planning and moving
entries in the first pass. A line for each number of threads: seconds, and the ratio of each pair, theirs over ours.
"""
import argparse
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time


def zipf(folder):
    random.seed(7)
    weights = [[(rank + 1) ** -1.2 for rank in range(extent)] for extent in (200_000, 20_000)]
    names = [random.sample(range(len(one)), len(one)) for one in weights]
    paths = [os.path.join(folder, name) for name in ("train", "test")]
    for path, count in zip(paths, (5_000_000, 100_000)):
        with open(path, "w") as file:
            rows, columns = (random.choices(name, one, k=count) for name, one in zip(names, weights))
            file.writelines(f"{i} {j} {1 + (i * 7 + j * 13) % 5}\n" for i, j in zip(rows, columns))
            # Both files have the same shape.
            file.write("199999 19999 3\n")
    return paths


class Theirs:
    name = "LIBMF"

    def __init__(self, program, train, test, rank, iterations):
        self.program, self.train, self.test, self.rank, self.iterations = program, train, test, rank, iterations

    def lines(self, threads, iterations, *more):
        """The moment and the words of each line of an iteration."""
        command = [self.program, "-f", "0", "-k", str(self.rank), "-s", str(threads), "-t", str(iterations), *more]
        command += [self.train, os.devnull]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                words = line.split()
                if words and words[0].isdigit():
                    yield time.perf_counter(), words
        if process.returncode != 0:
            sys.exit(f"{self.program} ended with {process.returncode}")

    def seconds(self, threads, target, options):
        """To the target, or of a pass; and how many passes."""
        count = self.iterations
        if target is not None:
            lines = self.lines(threads, self.iterations, *options, "-p", self.test)
            count = next((at + 1 for at, (_, words) in enumerate(list(lines)) if float(words[2]) <= target), None)
            if count is None:
                sys.exit(f"mf-train does not reach {target} in {self.iterations} iterations: --iterations, --libmf-options")
        moments = [moment for moment, _ in self.lines(threads, count, *options)]
        each = (moments[-1] - moments[0]) / (len(moments) - 1)
        return (each * count if target is not None else each), count


class Ours:
    name = "ours"

    def __init__(self, program, train, test, rank, folder, iterations):
        self.curve = os.path.join(folder, "curve.csv")
        self.command = [program, "--quiet", "--train", train, "--test", test, "--rank", str(rank), "--passes", str(iterations)]

    def seconds(self, threads, target, options):
        more = ["--curve", self.curve, "--workers", str(threads), *options]
        more += ["--target", str(target)] if target is not None else []
        subprocess.run([*self.command, *more], check=True, stdout=subprocess.DEVNULL)
        with open(self.curve) as file:
            rows = list(csv.DictReader(file))
        seconds = [float(row["seconds"]) for row in rows]
        if target is not None:
            if float(rows[-1]["test RMSE"]) > target:
                sys.exit(f"factorize does not reach {target} in {len(rows)} passes: --iterations, --options")
            return seconds[-1], len(rows)
        return (seconds[-1] - seconds[0]) / (len(rows) - 1), len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mf-train", default="mf-train")
    parser.add_argument("--program", required=True)
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--zipf", action="store_true")
    parser.add_argument("--target", type=float, default=0.8463)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--disturb", type=int, metavar="CORE")
    parser.add_argument("--options", default="--blocks dynamic", help="of factorize, in one argument; several sets with commas")
    parser.add_argument("--libmf-options", default="-l2 0.04 -r 0.1")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train, test = zipf(folder) if args.zipf else (args.train, args.test)
        if train is None or test is None:
            sys.exit("--train and --test, or --zipf")
        target = None if args.zipf else args.target
        theirs = Theirs(args.mf_train, train, test, args.rank, args.iterations)
        ours = Ours(args.program, train, test, args.rank, folder, args.iterations)
        disturber = None
        if args.disturb is not None:
            disturber = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{args.disturb}])\nwhile True: pass"])
        try:
            for threads in args.threads:
                for options in args.options.split(","):
                    pairs = []
                    for _ in range(args.rounds):
                        pairs.append((theirs.seconds(threads, target, args.libmf_options.split()), ours.seconds(threads, target, options.split())))
                    ratios = sorted(a[0] / b[0] for a, b in pairs)
                    said = [f"{one} {statistics.median(pair[at][0] for pair in pairs):.3f} s, {statistics.median(pair[at][1] for pair in pairs):g} passes" for at, one in enumerate(("LIBMF", f"ours {options}"))]
                    print(f"{threads} threads: {'; '.join(said)}; ratio {ratios[0]:.2f}, {statistics.median(ratios):.2f}, {ratios[-1]:.2f}", flush=True)
        finally:
            if disturber is not None:
                disturber.kill()
                disturber.wait()


main()
