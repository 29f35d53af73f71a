"""Speed of scikit-learn's SGD for logistic regression (L2) on one core, in non-zeros per second.

    python3 sparse_lr_sklearn.py [--rows 100000] [--features 47236] [--per-row 71] [--exponent 1.1] [--passes 5]

Generated data of RCV1's shape: features by Zipf's law, values positive, rows of unit length.
"""
import argparse
import json
import time

import numpy
import scipy.sparse
import sklearn
from sklearn.linear_model import SGDClassifier


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=47_236)
    parser.add_argument("--per-row", type=int, default=71)
    parser.add_argument("--exponent", type=float, default=1.1)
    parser.add_argument("--passes", type=int, default=5)
    o = parser.parse_args()
    random = numpy.random.default_rng(1)
    chances = numpy.arange(1, o.features + 1) ** -o.exponent
    features = random.choice(o.features, size=o.rows * o.per_row, p=chances / chances.sum()).astype(numpy.int32)
    values = random.random(o.rows * o.per_row)
    rows = numpy.repeat(numpy.arange(o.rows), o.per_row)
    data = scipy.sparse.csr_matrix((values, (rows, features)), shape=(o.rows, o.features))
    lengths = numpy.sqrt(data.multiply(data).sum(axis=1)).A1
    data = scipy.sparse.diags(1.0 / lengths).dot(data).tocsr()
    labels = numpy.where(data.dot(random.standard_normal(o.features)) > 0, 1, -1)
    for kind in (numpy.float32, numpy.float64):
        typed = data.astype(kind)
        model = SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=o.passes, tol=None, random_state=1)
        model.fit(typed[:100], labels[:100])
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(typed, labels)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        done = typed.nnz * o.passes / 1e6
        print(json.dumps({
            "program": f"scikit-learn {sklearn.__version__}", "type": kind.__name__, "non_zeros": typed.nnz,
            "M_per_wall": round(done / wall, 1), "M_per_cpu": round(done / cpu, 1),
        }))


if __name__ == "__main__":
    main()
