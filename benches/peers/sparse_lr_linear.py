"""Logistic regression of LIBLINEAR, Vowpal Wabbit, scikit-learn and `sparse_lr`, in turn, from files to a model.

    python3 sparse_lr_linear.py --train a9a --test a9a.t --program target/release/examples/sparse_lr [--rounds 5] [--l2 3e-5]

Seconds of the whole program or call, reading included, by the clock and of processors, median and best; test loss, accuracy, and AUC. All minimize the mean
loss and L2 / 2 times the squares of the weights. `liblinear-train` and `liblinear-predict` are Debian's liblinear-tools,
vowpalwabbit and scikit-learn PyPI's.
"""
import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time

import numpy
from sklearn.datasets import load_svmlight_file, load_svmlight_files
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score


def call(*command):
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def processors():
    who = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in who)


class Sides:
    """Each way trains and returns what is needed to predict; then probabilities of the positive label."""

    def __init__(self, o, folder):
        self.o, self.folder = o, folder
        _, labels = load_svmlight_file(o.train)
        self.examples = len(labels)
        self.features, self.labels = load_svmlight_files([o.train, o.test])[2:]
        self.labels = self.labels > 0
        for name, source in (("train.vw", o.train), ("test.vw", o.test)):
            with open(source) as lines, open(f"{folder}/{name}", "w") as out:
                for line in lines:
                    label, *features = line.split()
                    out.write(f"{1 if float(label) > 0 else -1} | {' '.join(features)}\n")

    def ours(self, workers):
        o, model, out = self.o, f"{self.folder}/ours", f"{self.folder}/ours.txt"
        return (lambda: call(o.program, "--data", o.train, "--test", o.test, "--passes", o.passes, "--l2", o.l2, "--workers",
                             workers, "--quiet", "--save", model),
                lambda: (call(o.program, "--load", model, "--test", o.test, "--predict", out), numpy.loadtxt(out))[1])

    def liblinear(self):
        o, model, out = self.o, f"{self.folder}/liblinear", f"{self.folder}/liblinear.txt"
        cost = 1 / (o.l2 * self.examples)

        def predict():
            call("liblinear-predict", "-b", 1, o.test, model, out)
            with open(out) as lines:
                place = [float(label) > 0 for label in next(lines).split()[1:]].index(True)
                return numpy.array([float(line.split()[1 + place]) for line in lines])
        return lambda: call("liblinear-train", "-s", 0, "-B", 1, "-c", cost, o.train, model), predict

    def vw(self):
        o, model, out = self.o, f"{self.folder}/vw", f"{self.folder}/vw.txt"
        tool = ("python3", "-m", "vowpalwabbit")
        return (lambda: call(*tool, "-d", f"{self.folder}/train.vw", "--loss_function", "logistic", "--passes", o.passes,
                             "--cache_file", f"{self.folder}/cache", "-k", "--holdout_off", "--l2", o.l2, "-b", 18,
                             "-f", model),
                lambda: (call(*tool, "-d", f"{self.folder}/test.vw", "-t", "-i", model, "--link", "logistic", "-p", out),
                         numpy.loadtxt(out))[1])

    def sklearn(self):
        o, found = self.o, []

        def train():
            features, labels = load_svmlight_file(o.train, n_features=self.features.shape[1])
            found[:] = [LogisticRegression(C=1 / (o.l2 * self.examples), max_iter=1000).fit(features, labels > 0)]
        return train, lambda: found[0].predict_proba(self.features)[:, 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--l2", type=float, default=3e-5)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = Sides(o, folder)
        ways = {"ours, 1 worker": sides.ours(1), "ours, 2 workers": sides.ours(2), "liblinear": sides.liblinear(),
                "vw": sides.vw(), "scikit-learn": sides.sklearn()}
        times, used, quality = {name: [] for name in ways}, {name: [] for name in ways}, {}
        for _ in range(o.rounds):
            for name, (train, predict) in ways.items():
                began, before = time.perf_counter(), processors()
                train()
                times[name].append(time.perf_counter() - began)
                used[name].append(processors() - before)
                chances = numpy.clip(predict(), 1e-12, 1 - 1e-12)
                quality[name] = (log_loss(sides.labels, chances), accuracy_score(sides.labels, chances > 0.5),
                                 roc_auc_score(sides.labels, chances))
        for name in ways:
            loss, accuracy, area = quality[name]
            print(json.dumps({"program": name, "seconds": [round(f(times[name]), 3) for f in (statistics.median, min)],
                              "of_processors": [round(f(used[name]), 3) for f in (statistics.median, min)],
                              "test_loss": round(loss, 4), "accuracy": round(accuracy, 4), "auc": round(area, 4)}), flush=True)


if __name__ == "__main__":
    main()
