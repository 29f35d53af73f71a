"""k-means of scikit-learn and ours in turn: time of a Lloyd iteration from the same centers, and objectives of several seeds.

    cargo build --release --example kmeans
    python3 kmeans_sklearn.py target/release/examples/kmeans [--points FILE] [--clusters 50] [--threads 1 2]

FILE is NumPy's .npy, or LIBSVM's format, which is made dense; without it, blobs: 200,000 points of 16 dimensions around 50
centers. One line of JSON for each number of threads, which both programs get: milliseconds of an iteration, by the clock and of
processors, which other programs on the machine disturb less.
"""
import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
import warnings

import numpy as np
import sklearn
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits


def read(path):
    if path is None:
        random = np.random.default_rng(13)
        centers = 8 * random.random((50, 16))
        return (centers[random.integers(0, 50, 200_000)] + random.normal(size=(200_000, 16))).astype(np.float32)
    if path.endswith(".npy"):
        return np.load(path).astype(np.float32)
    return load_svmlight_file(path)[0].toarray().astype(np.float32)


class Ours:
    def __init__(self, program, folder, points):
        self.program, self.folder = program, folder
        self.points = os.path.join(folder, "points.npy")
        np.save(self.points, points)

    def run(self, threads, passes, *more):
        """Seconds and objective after each pass."""
        curve = os.path.join(self.folder, "curve.csv")
        command = [self.program, "--quiet", "--points", self.points, "--workers", str(threads), "--passes", str(passes)]
        subprocess.run([*command, "--curve", curve, *more], check=True, stdout=subprocess.DEVNULL)
        with open(curve) as file:
            return [(float(row["seconds"]), float(row["mean square distance"])) for row in csv.DictReader(file)]

    def iteration(self, threads, passes, centers):
        one = processors(lambda: self.run(threads, 1, "--load", centers))[0]
        all, rows = processors(lambda: self.run(threads, passes, "--load", centers))
        between = len(rows) - 1
        return (rows[-1][0] - rows[0][0]) / between, rows[-1][0], (all - one) / between


def processors(run):
    """Seconds of processors that programs take, and what they return."""
    def used():
        who = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in who)
    before = used()
    result = run()
    return used() - before, result


def theirs(points, clusters, passes, **more):
    began = time.perf_counter()
    model = KMeans(clusters, n_init=1, max_iter=passes, tol=0, **more).fit(points)
    return time.perf_counter() - began, model


def iteration(points, clusters, passes, centers):
    cpu_one, (one, first) = processors(lambda: theirs(points, clusters, 1, init=centers))
    cpu_all, (all, last) = processors(lambda: theirs(points, clusters, passes, init=centers))
    between = last.n_iter_ - first.n_iter_
    return (all - one) / between, all, (cpu_all - cpu_one) / between


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--points")
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    points = read(options.points)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(options.program, folder, points)
        start = kmeans_plusplus(points, options.clusters, random_state=0)[0]
        centers = os.path.join(folder, "centers.npy")
        np.save(centers, start)
        for threads in options.threads:
            pairs = []
            for _ in range(options.rounds):
                with threadpool_limits(limits=threads):
                    their = iteration(points, options.clusters, options.passes, start)
                pairs.append((*their, *ours.iteration(threads, options.passes, centers)))
            t, t_all, t_cpu, o, o_all, o_cpu = (statistics.median(column) * 1e3 for column in zip(*pairs))
            ratios, cpu = sorted(pair[0] / pair[3] for pair in pairs), sorted(pair[2] / pair[5] for pair in pairs)
            print(json.dumps({
                "program": f"scikit-learn {sklearn.__version__}", "points": points.shape, "threads": threads,
                "theirs_ms_per_iteration": round(t, 2), "ours_ms_per_iteration": round(o, 2),
                "speed_of_theirs": round(statistics.median(ratios), 2), "ratios": [round(x, 2) for x in ratios],
                "theirs_cpu_ms_per_iteration": round(t_cpu, 2), "ours_cpu_ms_per_iteration": round(o_cpu, 2),
                "cpu_ratios": [round(x, 2) for x in cpu],
                "theirs_ms_in_all": round(t_all, 1), "ours_ms_in_all": round(o_all, 1),
            }), flush=True)
        objectives = []
        for seed in range(1, options.seeds + 1):
            model = theirs(points, options.clusters, 100, random_state=seed)[1]
            rows = ours.run(options.threads[-1], 100, "--clusters", str(options.clusters), "--seed", str(seed))
            objectives.append((model.inertia_ / len(points), rows[-1][1]))
        if objectives:
            mean = [statistics.mean(column) for column in zip(*objectives)]
            print(json.dumps({
                "seeds": options.seeds, "theirs": [round(float(x[0]), 4) for x in objectives],
                "ours": [round(x[1], 4) for x in objectives], "theirs_mean": round(float(mean[0]), 4),
                "ours_mean": round(mean[1], 4), "ours_over_theirs": round(float(mean[1] / mean[0]), 4),
            }))


if __name__ == "__main__":
    main()
