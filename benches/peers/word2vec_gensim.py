"""Speed of gensim's word2vec on a text that `cargo run --release --example word2vec -- --write-text FILE` wrote.

    python3 word2vec_gensim.py FILE [--passes 3]

One line of JSON: thousand words per second, before and after thinning of frequent words, on one thread; d 100, 5 negatives,
window 5, as in ours.
"""
import argparse
import json
import time

import gensim
from gensim.models import Word2Vec
from gensim.models.word2vec import FAST_VERSION


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    with open(options.file) as lines:
        sentences = [line.split() for line in lines]
    words = sum(map(len, sentences))
    model = Word2Vec(
        vector_size=100, window=5, negative=5, sg=1, hs=0, sample=1e-3, alpha=0.025, min_count=1, workers=1, seed=1,
    )
    model.build_vocab(sentences)
    wall, cpu = time.perf_counter(), time.process_time()
    kept, _ = model.train(sentences, total_examples=len(sentences), epochs=options.passes)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({
        "program": f"gensim {gensim.__version__}", "compiled": FAST_VERSION >= 0, "words": words, "passes": options.passes,
        "all_per_wall": round(words * options.passes / wall / 1e3, 1),
        "kept_per_wall": round(kept / wall / 1e3, 1), "kept_per_cpu": round(kept / cpu / 1e3, 1),
    }))


if __name__ == "__main__":
    main()
