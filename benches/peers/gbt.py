"""Gradient-boosted trees of LightGBM, XGBoost and `gbt`, in turn: time of training alone, and what is learned.

    python3 gbt.py --train a9a --test a9a.t --program target/release/examples/gbt [--threads 1 2] [--rounds 7]

All get the same limits: trees, depth, rate, bins, lambda, and a least weight of 1; LightGBM as many leaves as the depth allows. Their
data sets are made before. Seconds of training, median and best, of our program from its curve (tests after each tree are not in
it); test loss, accuracy, AUC. For each number of threads, ratios of speeds to the faster one of the two: of the medians, of the best,
and the median of the ratios round by round. At the end, the speedup from the first number of threads to the last.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile
import time

import lightgbm
import numpy
import xgboost
from sklearn.datasets import load_svmlight_files
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score


class Sides:
    """Each way trains, and tells its seconds and the probabilities of the positive label."""

    def __init__(self, o, folder):
        self.o, self.folder = o, folder
        self.x, self.y, self.test, self.labels = load_svmlight_files([o.train, o.test])
        self.y, self.labels = self.y > 0, self.labels > 0

    def ours(self, threads):
        o, curve, predicted = self.o, f"{self.folder}/curve.csv", f"{self.folder}/predicted"
        command = [o.program, "--quiet", "--data", o.train, "--test", o.test, "--workers", threads, "--trees", o.trees,
                   "--depth", o.depth, "--rate", o.rate, "--bins", o.bins, "--growth", o.growth, "--leaves", 2**o.depth,
                   "--features", self.x.shape[1], "--curve", curve, "--predict", predicted]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        with open(curve) as file:
            return float(list(csv.DictReader(file))[-1]["seconds"]), numpy.loadtxt(predicted)

    def lightgbm(self, threads):
        o = self.o
        parameters = {"objective": "binary", "num_leaves": 2**o.depth, "max_depth": o.depth, "learning_rate": o.rate,
                      "max_bin": o.bins, "lambda_l2": 1, "min_sum_hessian_in_leaf": 1, "min_data_in_leaf": 1,
                      "num_threads": threads, "verbose": -1}
        data = lightgbm.Dataset(self.x, self.y.astype(int), params=parameters).construct()
        began = time.perf_counter()
        model = lightgbm.train(parameters, data, o.trees)
        return time.perf_counter() - began, model.predict(self.test)

    def xgboost(self, threads):
        o = self.o
        parameters = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": o.depth, "eta": o.rate,
                      "max_bin": o.bins + 1, "reg_lambda": 1, "min_child_weight": 1, "nthread": threads,
                      "grow_policy": "depthwise" if o.growth == "depth" else "lossguide"}
        data = xgboost.QuantileDMatrix(self.x, self.y.astype(int), max_bin=o.bins + 1, nthread=threads)
        began = time.perf_counter()
        model = xgboost.train(parameters, data, o.trees)
        return time.perf_counter() - began, model.predict(xgboost.DMatrix(self.test))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--bins", type=int, default=255)
    parser.add_argument("--growth", choices=["depth", "leaf"], default="depth")
    o = parser.parse_args()
    print(json.dumps({"lightgbm": lightgbm.__version__, "xgboost": xgboost.__version__, "cores": os.cpu_count()}))
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        sides = Sides(o, folder)
        names = ["ours", "lightgbm", "xgboost"]
        seconds = {(name, threads): [] for threads in o.threads for name in names}
        predicted = {}
        for _ in range(o.rounds):
            for threads in o.threads:
                for name in names:
                    took, predicted[name] = getattr(sides, name)(threads)
                    seconds[name, threads].append(took)
        for threads in o.threads:
            for name in names:
                all = seconds[name, threads]
                best[name, threads] = statistics.median(all), min(all)
                print(json.dumps({
                    "threads": threads, "side": name, "seconds": round(statistics.median(all), 4), "best": round(min(all), 4),
                }))
            faster = min(names[1:], key=lambda name: best[name, threads][0])
            rounds = [theirs / ours for ours, theirs in zip(seconds["ours", threads], seconds[faster, threads])]
            print(json.dumps({
                "threads": threads, "against": faster,
                "of_medians": round(best[faster, threads][0] / best["ours", threads][0], 2),
                "of_best": round(best[faster, threads][1] / best["ours", threads][1], 2),
                "of_rounds": round(statistics.median(rounds), 2),
            }), flush=True)
        for name in names:
            p = predicted[name]
            print(json.dumps({
                "side": name, "test_loss": round(log_loss(sides.labels, p), 4),
                "accuracy": round(accuracy_score(sides.labels, p > 0.5), 4), "auc": round(roc_auc_score(sides.labels, p), 4),
            }))
    first, last = o.threads[0], o.threads[-1]
    if first != last:
        rounds = [one / other for one, other in zip(seconds["ours", first], seconds["ours", last])]
        print(json.dumps({
            "from": first, "to": last, "speedup": round(statistics.median(rounds), 2),
            "of_best": round(best["ours", first][1] / best["ours", last][1], 2),
        }))


if __name__ == "__main__":
    main()
