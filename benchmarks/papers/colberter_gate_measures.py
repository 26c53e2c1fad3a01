"""What a gated model ranks and drops on one collection, by brute force; texts are read once for all rows."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import torch
from benchmarks.papers.colberter_gate_rows import THRESHOLDS

from counterpoint.encode import BY_GATE, Encoder, Mean, TextInput, Tokens, Transformer, WholeWords
from counterpoint.encode.batching import token_batches
from counterpoint.encode.words import WordSettings, is_punctuation
from counterpoint.index.analysis import stop_words
from counterpoint.measure import evaluate
from counterpoint.score import Dot, MaxSim
from counterpoint.search import Run
from counterpoint.vectors import Vectors

WORDS = WordSettings("nltk", 32, False)  # those of the rows' head
CLASSES = ("stop words", "punctuation", "numbers", "others")
STOP = stop_words("simple")  # 179 English words, the same list as NLTK's
POSITIONS, BUDGET = 512, 16384
FIRST, DEPTH = 100, 100  # candidates of workflow 2, and documents of a run
FREQUENT = 12


@dataclass(frozen=True)
class Texts:
    """A collection, tokenised once.

    Attributes:
        queries: ids.
        qrels: of these queries.
        documents: ids in the order of the batches.
        asked: all queries.
        batches: all documents.
        numbers: of each document's rows, the place of the word in `words`.
        words: (spelling, class) of each distinct word.
    """

    queries: list[str]
    qrels: dict
    documents: list[str]
    asked: Tokens
    batches: list[Tokens]
    numbers: np.ndarray
    words: list[tuple[str, str]]


def class_of(word):
    if word in STOP:
        return "stop words"
    if is_punctuation(word):
        return "punctuation"
    return "numbers" if re.search(r"\d", word) else "others"


def reader():
    """An encoder that only reads texts."""
    text = TextInput(POSITIONS)
    heads = {"mean": Mean(), "words": WholeWords(stem="nltk")}
    return Encoder(Transformer("minilm"), heads, query=text, document=text).setup()


def read(collection, split, encoder):
    """A collection's judged queries of one split, and all its documents."""
    qrels = collection.qrels(split)
    queries = {query: text for query, text in collection.queries(split).items() if query in qrels}
    documents = list(collection.documents())
    rows = encoder.rows([document.full_text for document in documents], "document")
    groups = token_batches([len(row) for row in rows], BUDGET)
    batches = [encoder.pad([rows[at] for at in group], "document") for group in groups]
    numbers, words = words_of(batches)
    return Texts(
        queries=list(queries),
        qrels={query: dict(qrels[query]) for query in queries},
        documents=[documents[at].id for group in groups for at in group],
        asked=encoder.tokens(list(queries.values()), "query"),
        batches=batches,
        numbers=numbers,
        words=words,
    )


def words_of(batches):
    """The word of every row, and the most frequent spelling of every word with its class."""
    ids, written = [], defaultdict(Counter)
    for tokens in batches:
        found = tokens.words[WORDS]
        for text, numbers, spans in zip(tokens.texts, found.ids, found.spans, strict=True):
            there = numbers > 0
            ids.append(numbers[there].numpy())
            for number, (start, end) in zip(ids[-1].tolist(), spans[there].tolist(), strict=True):
                written[number][text[start:end].lower()] += 1
    known, numbers = np.unique(np.concatenate(ids), return_inverse=True)
    spelt = [max(sorted(written[n]), key=written[n].__getitem__) for n in known.tolist()]
    return numbers, [(word, class_of(word)) for word in spelt]


def measured(model, texts):
    """Quality by workflow and threshold, what is dropped by class, and the most frequent words.

    A row is kept if its r is above the threshold; without a gate all rows are kept.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.eval().to(device)
    with torch.inference_mode():
        pooled, words, gates = scored(model, texts, device)
        quality = {level: ranked(pooled, of_words, texts) for level, of_words in words.items()}
    quality[THRESHOLDS[0]] |= per_query("dense", run_of(pooled, texts), texts, ("nDCG@10", "R@100"))
    dropped = {"rows": len(texts.numbers)} if gates is None else drops(gates, texts)
    return {"documents": len(texts.documents), "quality": quality, **dropped}


def scored(model, texts, device):
    """Scores of all queries and documents by pooled vectors and, for every threshold, by words; all r."""
    levels = THRESHOLDS if "words" in model.encoder.gates else THRESHOLDS[:1]
    asked = encoded(model, texts.asked, device)
    dense, words, gates = [], {level: [] for level in levels}, []
    for tokens in texts.batches:
        made = encoded(model, tokens, device)
        dense.append(Dot("mean")(asked, made).float())
        for level in levels:
            some = {"words": above(made, level)}
            words[level].append(MaxSim("words", floor0=True)(asked, some))
        if "words" + BY_GATE in made:
            r = made["words" + BY_GATE]
            gates.append(r.values[..., 0][r.mask].float().cpu().numpy())
    weights = model.search["weights"]
    of_words = {level: weights["words"] * torch.cat(found, 1) for level, found in words.items()}
    return weights["mean"] * torch.cat(dense, 1), of_words, np.concatenate(gates) if gates else None


def encoded(model, tokens, device):
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return model(tokens.to(device))


def above(made, level):
    rows = made["words"]
    if "words" + BY_GATE not in made:
        return rows
    return Vectors(rows.values, rows.mask & (made["words" + BY_GATE].values[..., 0] > level), rows.ids)


def ranked(pooled, words, texts):
    """Quality of every query, by workflow.

    `dense-words` refines the pooled vectors' best hundred; `hybrid` ranks all documents by the whole score.
    """
    whole = pooled + words
    first = pooled.topk(min(FIRST, pooled.shape[1]), 1).indices
    refined = run_of(whole.gather(1, first), texts, first)
    return {
        **per_query("words", run_of(words, texts), texts, ("nDCG@10",)),
        **per_query("hybrid", run_of(whole, texts), texts, ("nDCG@10", "R@100")),
        **per_query("dense-words", refined, texts, ("nDCG@10",)),
    }


def per_query(workflow, run, texts, measures):
    """Values in the order of `texts.queries`, by workflow and measure."""
    found = evaluate(run, texts.qrels, measures).per_query
    return {
        f"{workflow} {measure}": [round(float(values[query]), 4) for query in texts.queries]
        for measure, values in found.items()
    }


def run_of(scores, texts, places=None):
    """The best documents; `places` are those that were scored, all where None."""
    best = scores.topk(min(DEPTH, scores.shape[1]), 1)
    places = best.indices if places is None else places.gather(1, best.indices)
    return Run(
        {
            query: {texts.documents[at]: score for at, score in zip(row, values, strict=True)}
            for query, row, values in zip(texts.queries, places.tolist(), best.values.tolist(), strict=True)
        }
    )


def drops(gates, texts):
    """Rows dropped at each threshold: all, by class, and of the words with most rows."""
    kinds = np.array([CLASSES.index(kind) for _, kind in texts.words])[texts.numbers]
    found = {kind: dropped(gates[kinds == at]) for at, kind in enumerate(CLASSES)}
    rows = np.bincount(texts.numbers, minlength=len(texts.words))
    frequent = np.argsort(-rows, kind="stable")[:FREQUENT].tolist()
    return {
        **dropped(gates),
        "classes": found,
        "separation": separation(gates[kinds == 0], gates[kinds != 0]),
        "words": {texts.words[at][0]: dropped(gates[texts.numbers == at]) for at in frequent},
    }


def dropped(gates):
    """How many rows there are, their mean r, and how many are dropped at each threshold."""
    mean = float(gates.mean()) if len(gates) else None
    return {
        "rows": len(gates),
        "mean": mean,
        "dropped": {level: int((gates <= level).sum()) for level in THRESHOLDS},
    }


def separation(stop, others):
    """Probability that a stop word's r is below that of another row; ties count half."""
    if not len(stop) or not len(others):
        return None
    ordered = np.sort(others)
    below, upto = (np.searchsorted(ordered, stop, side) for side in ("left", "right"))
    return float(1 - (below + upto).mean() / (2 * len(others)))
