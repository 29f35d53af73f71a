"""Speed of tomotopy's LDA on a corpus that `cargo run --release --example lda -- --write-tokens FILE` wrote.

    python3 lda_tomotopy.py FILE [--passes 30] [--topics 100] [--alpha 0.1] [--beta 0.01]

One line of JSON: million tokens per second of wall clock and of CPU, training only, on one thread.
"""
import argparse
import json
import time

import tomotopy


def documents(path):
    """Words of the documents, as strings of their numbers: lines `document word`, in the order of documents."""
    docs, last = [], None
    with open(path) as lines:
        for line in lines:
            doc, word = line.split()
            if doc != last:
                docs.append([])
                last = doc
            docs[-1].append(word)
    return docs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--beta", type=float, default=0.01)
    options = parser.parse_args()
    # `optim_interval = 0` below: the priors stay what they are, as in ours.
    model = tomotopy.LDAModel(k=options.topics, alpha=options.alpha, eta=options.beta, seed=1)
    tokens = 0
    for words in documents(options.file):
        model.add_doc(words)
        tokens += len(words)
    model.optim_interval = 0
    # Prepares the model: topics are drawn at random here, outside of what is timed.
    model.train(0, workers=1)
    wall, cpu = time.perf_counter(), time.process_time()
    model.train(options.passes, workers=1)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    done = tokens * options.passes / 1e6
    print(json.dumps({
        "program": f"tomotopy {tomotopy.__version__} ({tomotopy.isa})", "tokens": tokens, "passes": options.passes,
        "wall": round(done / wall, 3), "cpu": round(done / cpu, 3), "log_likelihood": round(model.ll_per_word, 4),
    }))


if __name__ == "__main__":
    main()
