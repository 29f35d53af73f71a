"""gensim's word2vec and ours in turn on the same text: words per second, and how good vectors are.

    python3 word2vec_gensim.py FILE --program target/release/examples/word2vec [--passes 2] [--threads 1] [--rounds 3]

FILE has a sentence a line, words between spaces (`--split TEXT` makes it of a text with paragraphs). One line of JSON for each
program: thousand words per second of wall clock (of the text, and those that thinning left), training only, median and best of
the rounds; d 100, 5 negatives, window 5. Vectors are judged by the rank correlation of their cosines with what people say of
353 pairs of words (WordSim-353, which is part of gensim), and by the chance that a word and its plural are more alike than
the word and a random one.
"""
import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time

import gensim
import numpy
from gensim.models import KeyedVectors, Word2Vec
from gensim.test.utils import datapath


def split(text, file):
    with open(text, encoding="utf-8", errors="replace") as source, open(file, "w") as lines:
        for paragraph in re.split(r"\n\s*\n", source.read().lower()):
            words = re.findall(r"[a-z]+", paragraph)
            if len(words) > 1:
                lines.write(" ".join(words) + "\n")


def quality(vectors):
    _, (pairs, _), missing = vectors.evaluate_word_pairs(datapath("wordsim353.tsv"))
    unit = vectors.get_normed_vectors()[:20000]
    numbers = {word: at for at, word in enumerate(vectors.index_to_key[:20000])}
    plurals = [(at, numbers[word + "s"]) for word, at in numbers.items() if len(word) > 2 and word + "s" in numbers]
    others = numpy.random.default_rng(5).integers(0, len(unit), (len(plurals), 200))
    more = [(unit[a] @ unit[b] > unit[rest] @ unit[a]).mean() for (a, b), rest in zip(plurals, others)]
    return {"wordsim353": round(float(pairs), 4), "missing_percent": round(missing, 1), "plurals": round(float(numpy.mean(more)), 4)}


class Theirs:
    name = f"gensim {gensim.__version__}"

    def __init__(self, o, sentences):
        self.o, self.sentences = o, sentences

    def run(self):
        o = self.o
        model = Word2Vec(vector_size=100, window=5, negative=5, sg=1, hs=0, sample=1e-3, alpha=0.025, min_count=5,
                         workers=o.threads, seed=1)
        model.build_vocab(self.sentences)
        began = time.perf_counter()
        kept, words = model.train(self.sentences, total_examples=len(self.sentences), epochs=o.passes)
        return time.perf_counter() - began, words, kept, model.wv


class Ours:
    name = "ours"

    def __init__(self, o, sentences):
        self.o = o

    def run(self):
        o = self.o
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            said = subprocess.run(
                [o.program, "--text", o.file, "--lines", "--tokenized", "--workers", str(o.threads), "--passes", str(o.passes),
                 "--quiet", "--save", file.name], capture_output=True, text=True, check=True).stdout
            speeds = re.search(r"(\d+) thousand words/s, (\d+) after", said)
            seconds = float(re.search(r"passes, ([\d.]+) s", said)[1])
            every, kept = (float(speed) * 1e3 * seconds for speed in speeds.groups())
            return seconds, every, kept, KeyedVectors.load_word2vec_format(file.name, binary=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--program", required=True)
    parser.add_argument("--split", metavar="TEXT", help="first make FILE of this text")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    o = parser.parse_args()
    if o.split:
        split(o.split, o.file)
    with open(o.file) as lines:
        sentences = [line.split() for line in lines]
    sides = [Theirs(o, sentences), Ours(o, sentences)]
    runs = [[], []]
    for _ in range(o.rounds):
        for side, found in zip(sides, runs):
            seconds, words, kept, vectors = side.run()
            found.append((words / seconds / 1e3, kept / seconds / 1e3, quality(vectors)))
    for side, found in zip(sides, runs):
        speeds = [[run[at] for run in found] for at in range(2)]
        print(json.dumps({
            "program": side.name, "threads": o.threads, "passes": o.passes,
            "of_the_text": [round(f(speeds[0]), 1) for f in (statistics.median, max)],
            "kept": [round(f(speeds[1]), 1) for f in (statistics.median, max)], **found[-1][2],
        }), flush=True)
    ratios = sorted(b[1] / a[1] for a, b in zip(*runs))
    print(json.dumps({"ours_over_theirs": [round(ratio, 2) for ratio in ratios]}))


if __name__ == "__main__":
    main()
