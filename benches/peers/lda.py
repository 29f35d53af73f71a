"""Speed and held-out perplexity of `lda` beside WarpLDA (github.com/thu-ml/warplda, built by you) and tomotopy, in turn.

    python3 lda.py --program target/release/examples/lda --text FOLDER [--warplda FOLDER] [--topics 100]
        [--seconds 2 5 10] [--threads 1] [--rounds 3] [--sides warp gibbs warplda tomotopy]

All learn from the same tokens of the files below FOLDER (letters between others, of three letters or more, in lower case,
five times or more, without the 100 most frequent), one thread or worker each, training only, and are judged alike: every
tenth word of a document is held out. The first run of a side tells how many passes it does in the asked seconds.
"""
import argparse
import collections
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

import numpy

EVERY = 10


def corpus(folder):
    """Documents as lists of numbers of words, the most frequent ones first."""
    files = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()]
    texts = [re.findall(r"[a-z]{3,}", path.read_text("utf-8", "replace").lower()) for path in files]
    count = collections.Counter(word for text in texts for word in text)
    order = [word for word, times in count.most_common() if times >= 5][100:]
    numbers = {word: number for number, word in enumerate(order)}
    return [[numbers[word] for word in text if word in numbers] for text in texts], len(order)


class Judge:
    """What was learned from and what was held out, and how surprising the latter is to a model."""

    def __init__(self, documents, words, alpha, beta):
        pairs = [(doc, word, at % EVERY == EVERY - 1) for doc, text in enumerate(documents) for at, word in enumerate(text)]
        pairs = numpy.array(pairs, dtype=numpy.int64)
        self.held_out = pairs[pairs[:, 2] == 1, :2]
        self.train = pairs[pairs[:, 2] == 0, :2]
        self.shape, self.alpha, self.beta = (len(documents), words), alpha, beta

    def perplexity(self, shares, topics):
        nats = 0.0
        for part in numpy.array_split(self.held_out, 1 + len(self.held_out) // 20000):
            nats -= numpy.log((shares[part[:, 0]] * topics[:, part[:, 1]].T).sum(1)).sum()
        return float(numpy.exp(nats / len(self.held_out)))

    def of_topics(self, tokens, count):
        """From triples of document, word and topic."""
        doc = numpy.zeros((self.shape[0], count)) + self.alpha
        word = numpy.zeros((count, self.shape[1])) + self.beta
        numpy.add.at(doc, (tokens[:, 0], tokens[:, 2]), 1)
        numpy.add.at(word, (tokens[:, 2], tokens[:, 1]), 1)
        return self.perplexity(doc / doc.sum(1, keepdims=True), word / word.sum(1, keepdims=True))


class Ours:
    def __init__(self, o, judge, documents, folder, sampler):
        self.o, self.sampler, self.file = o, sampler, f"{folder}/lines.txt"
        with open(self.file, "w") as out:
            out.writelines(" ".join(f"w{word:05}" for word in text) + "\n" for text in documents)

    def run(self, passes):
        o = self.o
        said = subprocess.run(
            [o.program, "--text", self.file, "--lines", "--tokenized", "--min-count", "1", "--skip-top", "0", "--sampler",
             self.sampler, "--topics", str(o.topics), "--alpha", str(o.alpha), "--beta", str(o.beta), "--workers",
             str(o.threads), "--passes", str(passes), "--quiet", "--show", "0"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"perplexity ([\d.]+) after \d+ passes, ([\d.]+) s", said)
        return float(found[2]), float(found[1])


class WarpLDA:
    def __init__(self, o, judge, documents, folder, _):
        self.o, self.judge, self.prefix = o, judge, f"{folder}/warp"
        self.numbers = {}
        with open(f"{folder}/yahoo.txt", "w") as out:
            for doc, text in enumerate(documents):
                words = [f"w{word:05}" for at, word in enumerate(text) if at % EVERY != EVERY - 1]
                if words:
                    self.numbers[len(self.numbers)] = doc
                    out.write(f"{doc} {doc} {' '.join(words)}\n")
        subprocess.run([f"{o.warplda}/format", "-input", f"{folder}/yahoo.txt", "-prefix", self.prefix],
                       check=True, stdout=subprocess.DEVNULL)
        self.words = [int(line.strip()[1:]) for line in open(self.prefix + ".vocab")]

    def run(self, passes):
        o = self.o
        said = subprocess.run(
            [f"{o.warplda}/warplda", "--prefix", self.prefix, "--k", str(o.topics), "--alpha", str(o.alpha * o.topics), "--beta",
             str(o.beta), "--niter", str(passes), "-dumpmodel=false", "-writeinfo=false"],
            capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": str(o.threads)}).stdout
        seconds = sum(float(time) for time in re.findall(r"Iteration \d+, ([\d.]+) s", said))
        tokens = []
        for doc, line in enumerate(open(self.prefix + ".z.estimate")):
            for part in line.split()[1:]:
                word, topic = part.split(":")
                tokens.append((self.numbers[doc], self.words[int(word)], int(topic)))
        return seconds, self.judge.of_topics(numpy.array(tokens), o.topics)


class Tomotopy:
    def __init__(self, o, judge, documents, folder, _):
        self.o, self.judge, self.documents = o, judge, documents

    def run(self, passes):
        import time

        import tomotopy
        o = self.o
        model = tomotopy.LDAModel(k=o.topics, alpha=o.alpha, eta=o.beta, seed=1)
        numbers = []
        for doc, text in enumerate(self.documents):
            words = [str(word) for at, word in enumerate(text) if at % EVERY != EVERY - 1]
            if words:
                numbers.append(doc)
                model.add_doc(words)
        model.optim_interval = 0
        model.train(0, workers=1)
        began = time.perf_counter()
        model.train(passes, workers=o.threads)
        seconds = time.perf_counter() - began
        words = [int(word) for word in model.used_vocabs]
        tokens = [(doc, words[word], topic) for doc, text in zip(numbers, model.docs)
                  for word, topic in zip(text.words, text.topics)]
        return seconds, self.judge.of_topics(numpy.array(tokens), o.topics)


SIDES = {"warp": Ours, "gibbs": Ours, "warplda": WarpLDA, "tomotopy": Tomotopy}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--warplda", help="the folder with warplda and format")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--beta", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=["warp", "gibbs", "warplda"])
    o = parser.parse_args()
    documents, words = corpus(o.text)
    judge = Judge(documents, words, o.alpha, o.beta)
    tokens = len(judge.train)
    print(f"{tokens} tokens in {len(documents)} documents, {words} words, {o.topics} topics, {o.threads} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        sides = {name: SIDES[name](o, judge, documents, folder, name) for name in o.sides}
        rates = {name: 5 / side.run(5)[0] for name, side in sides.items()}
        for seconds in o.seconds:
            runs = {name: [] for name in sides}
            for _ in range(o.rounds):
                for name, side in sides.items():
                    passes = max(1, round(seconds * rates[name]))
                    took, perplexity = side.run(passes)
                    runs[name].append((passes * tokens / took / 1e6, passes, took, perplexity))
            for name, all_runs in runs.items():
                speeds = sorted(run[0] for run in all_runs)
                print(f"{seconds:6.1f} s  {name:9} {all_runs[0][1]:5} passes in {statistics.median(r[2] for r in all_runs):.2f} s, "
                      f"M tokens/s median {statistics.median(speeds):.2f} best {speeds[-1]:.2f}, "
                      f"perplexity {statistics.median(r[3] for r in all_runs):.0f}", flush=True)


if __name__ == "__main__":
    main()
