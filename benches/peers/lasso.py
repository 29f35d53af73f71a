"""Updates that examples/lasso needs to 1.01 of the best objective, by priority and by uniform draws, and what scikit-learn finds.

python benches/peers/lasso.py --program target/release/examples/lasso --train a9a
python benches/peers/lasso.py --program target/release/examples/lasso            # wide rows of correlated features, generated

The penalties are shares of the least one with which all weights are 0. Updates count the inner products of columns: also those by which
the weights to draw by were found.
"""
import argparse
import re
import statistics
import subprocess
import tempfile

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import Lasso

parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
parser.add_argument("--train")
parser.add_argument("--shares", default="0.3,0.1,0.03,0.01")
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--workers", default="2")
parser.add_argument("--more", nargs="*", default=[])
args = parser.parse_args()


def generated(rows=500, features=2000, matter=20):
    """Groups of ten features that are correlated by about a half."""
    random = np.random.default_rng(1)
    shared = np.repeat(random.normal(size=(rows, features // 10)), 10, axis=1)
    x = 0.7 * shared + 0.71 * random.normal(size=(rows, features))
    weights = np.zeros(features)
    weights[random.choice(features, matter, replace=False)] = 2 * random.normal(size=matter)
    return x.astype(np.float32).astype(np.float64), (x @ weights + random.normal(size=rows)).astype(np.float32)


def objective(x, y, model, alpha):
    rest = y - model.predict(x)
    return rest @ rest / (2 * len(y)) + alpha * np.abs(model.coef_).sum()


def run(*more):
    command = [args.program, "--data", train, "--workers", args.workers, *map(str, more), *args.more]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


def number(pattern, line):
    return float(re.search(pattern, line).group(1))


with tempfile.NamedTemporaryFile(suffix=".svm") as file:
    train = args.train
    if train:
        x, y = load_svmlight_file(train)
        x = np.asfortranarray(x.toarray())
    else:
        x, y = generated()
        train = file.name
        dump_svmlight_file(x, y, train, zero_based=False)
    greatest = np.abs((x - x.mean(0)).T @ (y - y.mean())).max() / len(y)
    print("share | lambda | weights | objective: scikit-learn, lasso | updates: priority, uniform | ratio | seconds")
    for share in map(float, args.shares.split(",")):
        alpha = greatest * share
        model = Lasso(alpha=alpha, tol=1e-9, max_iter=100_000).fit(x, y)
        theirs = objective(x, y, model, alpha)
        ours = number(r", ([\d.]+), at most", run("--lambda", alpha, "--gap", 1e-6, "--passes", 5000))
        target = 1.01 * min(theirs, ours)
        counts, times = {}, {}
        for way in ([], ["--uniform"]):
            lines = [
                run("--lambda", alpha, "--target", target, "--gap", 0, "--passes", 5000, "--seed", seed, *way)
                for seed in range(1, args.seeds + 1)
            ]
            counts[bool(way)] = statistics.median(number(r"(\d+) updates", line) for line in lines)
            times[bool(way)] = statistics.median(number(r"([\d.]+) s$", line) for line in lines)
        print(
            f"{share} | {alpha:.6f} | {np.count_nonzero(model.coef_)} of {x.shape[1]} | {theirs:.8f}, {ours:.8f} | "
            f"{counts[False]:.0f}, {counts[True]:.0f} | {counts[True] / counts[False]:.1f} | "
            f"{times[False]:.3f}, {times[True]:.3f}",
            flush=True,
        )
