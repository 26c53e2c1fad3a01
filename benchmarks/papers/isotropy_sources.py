"""Isotropic DR under its own premise: fine-tuned models of a source whose vectors are a cone, then the maps.

    python -m benchmarks.papers.isotropy_sources run squad11-dev --data DATA --work WORK --json 1.json
    python -m benchmarks.papers.isotropy_sources run nq-qed --data DATA --work WORK --json 2.json
    python -m benchmarks.papers.isotropy_sources run medquad --data DATA --work WORK --json 3.json
    python -m benchmarks.papers.isotropy_sources show --json 1.json 2.json 3.json

`run` is for one source, and the three can run at the same time. All of this was fixed before anything was
measured on test queries:

- Sources: `SOURCES`, each with 1,600 training queries, 100 held out and 150 for the test. Targets: the test
  queries of all sources and of `OTHERS`. At most 2,000 documents of a collection are searched, those that are
  judged among them. BM25's best hundred of them are reranked, as in the paper.
- Models: ColBERT and RepBERT on MiniLM's first five layers. MiniLM's vectors are a cone up to there (mean
  cosine .23 of tokens), and only its last layer has lost it in contrastive training.
- Choice: with seed 0 all variants of `isotropy_source_rows.py` are trained. The one with the highest nDCG@10
  on the held-out queries is taken, of those whose mean cosine on training documents is at least .2.
  Its tokens count for ColBERT, and its means for RepBERT.
- Maps: those of `PASSES`, fitted to four of five documents of the source, drawn by the seed, and 100 training
  queries. Seeds 0 to 2 are those of the fine-tuning and of the maps.
- "In" is the source's own test, "out" all other targets. A query's value out of distribution is the mean over
  the sources that are not its own.
- Control: the same on all six layers with the paper's loss, which is hardly a cone: whitening alone.

I(W) is of one sign, as in print. Rows are measured in the order of `PASSES`, all seeds of one, then the next.

The questions are in `isotropy_source_tables.py`. Every row is written to the JSON as soon as it is measured.
"""

import itertools
import json
import shutil
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from benchmarks.common import parser_of, read_json
from benchmarks.papers.isotropy_maps import Chain, chain_of
from benchmarks.papers.isotropy_source_rows import LAYERS, VARIANTS, chosen, recipe, texts
from benchmarks.papers.isotropy_source_tables import show
from benchmarks.papers.isotropy_source_vectors import DEVICE, Rows, draw, ndcg, states, write

from counterpoint.encode import Encoder, TokenVectors, Transformer
from counterpoint.errors import CounterpointError
from counterpoint.measure.alignment import mean_cosine
from counterpoint.measure.isotropy import partition_isotropy
from counterpoint.recipe import train

SOURCES = ("squad11-dev", "nq-qed", "medquad")
OTHERS = ("cranfield", "cisi", "med", "cacm")
SEEDS = (0, 1, 2)
LEVELS = {"ColBERT": ("token",), "RepBERT": ("token", "sequence")}
CLOSED = ("whitening", "half whitening", "whitening, target's mean")
STEPS = {"Glow": 400, "NICE": 300}
PASSES = ((True, CLOSED), (True, ("Glow",)), (False, CLOSED), (True, ("NICE",)))  # what matters most first
QUERIES, TOKENS = 100, 60_000  # of a source: training queries, and rows at most, that maps are fitted to
SAMPLE = 1000  # rows of each side that isotropy is measured on
ALL_LAYERS = 6
FAULTS = (CounterpointError, RuntimeError)  # a flow without a density, a full GPU: other rows go on


class Source:
    """A source and all targets, drawn and tokenised, and what has been measured."""

    def __init__(self, options):
        self.options = options
        names = (*SOURCES, *OTHERS)
        self.targets = {name: draw(options.data / name, name in SOURCES) for name in names}
        self.own = self.targets[options.source]
        self.data = write(self.own, options.work / options.source / "collection")
        reader = encoder_of("minilm")
        self.read = {
            name: (
                reader.rows(list(drawn.texts.values()), "document"),
                reader.rows(list(drawn.parts["test"].queries.values()), "query"),
            )
            for name, drawn in self.targets.items()
        }
        asked = {part: list(self.own.parts[part].queries.values()) for part in ("dev", "train")}
        self.held_out = reader.rows(asked["dev"], "query")
        self.fit = reader.rows(self.own.fit, "document"), reader.rows(asked["train"][:QUERIES], "query")
        queries = {name: list(drawn.parts["test"].queries) for name, drawn in self.targets.items()}
        found = {"source": options.source, "steps": options.steps, "queries": queries}
        self.found = {**found, "variants": {}, "chosen": {}, "rows": [], "errors": [], "seconds": {}}
        self.started = time.perf_counter()

    def save(self, what):
        """Write all that there is; a reader never sees half a file."""
        self.found["seconds"][what] = round(time.perf_counter() - self.started, 1)
        partial = self.options.json.with_suffix(".partial")
        partial.write_text(json.dumps(self.found), encoding="utf-8")
        partial.replace(self.options.json)
        print(f"{self.options.source}: {what}, {self.found['seconds'][what]} s", flush=True)

    def failed(self, what, error):
        self.found["errors"].append(f"{what}: {error!r}")
        self.save("an error")

    def trained(self, kind, variant, seed, layers):
        """The backbone of a row, trained unless it has been."""
        name = f"{kind}-{variant}-{layers}-{seed}"
        folder = self.options.work / self.options.source / name
        if not (folder / "model").is_dir():
            row = recipe(kind, variant, seed, self.options.steps, layers)
            collection, triples = self.data
            train(row, triples, folder, documents=collection, resume=folder.is_dir())
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        return encoder_of(str(folder))


def encoder_of(backbone):
    encoder = Encoder(Transformer(backbone), {"tokens": TokenVectors()}, **texts())
    return encoder.setup().to(DEVICE).eval()


# -- the choice -----------------------------------------------------------------------------------------


def choose(source, kind):
    """Train every variant with the first seed; measure its cone and its ranking of held-out queries."""
    found = source.found["variants"].setdefault(kind, {})
    for variant in VARIANTS[kind]:
        encoder = source.trained(kind, variant, SEEDS[0], LAYERS)
        documents = states(encoder, source.read[source.own.name][0], "document")
        queries = represent(kind, "token", states(encoder, source.held_out, "query"), Chain())
        seen = represent(kind, "token", documents.take(source.own.trained()), Chain())
        scored = ndcg(source.own, "dev", queries, represent(kind, "token", documents, Chain()))
        found[variant] = {"avgcos": mean_cosine(sample(seen)), "nDCG@10": float(np.mean(scored))}
        source.save(f"{kind}, {variant}")
    source.found["chosen"][kind] = chosen(found)
    return source.found["chosen"][kind]


def sample(rows):
    """Some rows, the same of every model."""
    drawn = np.random.default_rng(0).permutation(len(rows.values))[:SAMPLE]
    return rows.values[torch.from_numpy(drawn).to(rows.values.device)].double().cpu().numpy()


def represent(kind, level, rows, chain):
    """The unit vectors that a model scores: mapped token by token, or as the mean."""
    if level == "sequence":
        mean = rows.means()
        return Rows(chain(mean.values), mean.lengths).unit()
    mapped = Rows(chain(rows.values.float()), rows.lengths)
    return (mapped.means() if kind == "RepBERT" else mapped).unit()


# -- maps -----------------------------------------------------------------------------------------------


def fit_rows(documents, queries, level, seed):
    """What a map is fitted to: rows of documents drawn by the seed, four of five, and of queries."""
    draw_from = np.random.default_rng([seed, 7])
    total = len(documents.lengths)
    parts = documents.take(draw_from.permutation(total)[: max(1, 4 * total // 5)]), queries
    if level == "sequence":
        return torch.cat([part.means().values for part in parts])
    rows = torch.cat([part.values for part in parts])
    kept = np.sort(draw_from.permutation(len(rows))[:TOKENS])
    return rows[torch.from_numpy(kept).to(rows.device)].float()


def fitted(method, rows, seed):
    """A map; flows see the vectors themselves unless components are (nearly) constant."""
    spread = rows.std(0)
    rank = None if spread.min() > 1e-3 * spread.max() else 380
    options = SimpleNamespace(steps=STEPS.get(method, 1), rows=TOKENS, bfloat16=False)
    name = "whitening" if method == "whitening, target's mean" else method
    return chain_of(name, rows.shape[1], rank, seed, options).fit(rows)


def measure(source, model, encoder, methods):
    """Rows of a model with each map on all targets, and with whitening also without one.

    Args:
        source: where they are added.
        model: what a row says of the model: its kind, its seed, and whether it is a cone.
        encoder: of the model.
        methods: maps.
    """
    kind, seed = model["kind"], model["seed"]
    held = {
        name: (states(encoder, read[0], "document"), states(encoder, read[1], "query"))
        for name, read in source.read.items()
    }
    fit = [states(encoder, read, side) for read, side in zip(source.fit, ("document", "query"), strict=True)]
    if "whitening" in methods:
        add(source, model, "none", {name: on_target(source, name, kind, "token", held) for name in held})
    for method in methods:
        for level in LEVELS[kind]:
            rows = fit_rows(*fit, level, seed)
            try:
                chain, targets = fitted(method, rows, seed), {}
                for name in held:
                    own = centred(chain, held[name][0], level) if "target" in method else chain
                    targets[name] = on_target(source, name, kind, level, held, own)
            except FAULTS as error:
                source.failed(f"{model}, {level}, {method}", error)
                continue
            add(source, model, f"{level}, {method}", targets)


def centred(chain, documents, level):
    """The map about the mean of a target's documents."""
    rows = documents.means().values if level == "sequence" else documents.values.float()
    return chain.centred_on(rows)


def on_target(source, name, kind, level, held, chain=None):
    documents, queries = (represent(kind, level, rows, chain or Chain()) for rows in held[name])
    rows = np.concatenate([sample(documents), sample(queries)])
    return {
        "nDCG@10": ndcg(source.targets[name], "test", queries, documents),
        "I(W)": partition_isotropy(rows, signs="positive"),
        "avgcos": mean_cosine(rows),
    }


def add(source, model, name, targets):
    source.found["rows"].append({**model, "row": name, "targets": targets})
    source.save(f"{model['kind']}, cone {model['cone']}, seed {model['seed']}, {name}")


def run(options):
    source = Source(options)
    source.save("texts")
    for cone, methods in PASSES:
        for seed, kind in itertools.product(SEEDS, VARIANTS):
            model = {"kind": kind, "seed": seed, "cone": cone}
            try:
                measure(source, model, encoder_for(source, model), methods)
            except FAULTS as error:
                source.failed(model, error)


def encoder_for(source, model):
    """The control, or the variant that the rule chooses the first time."""
    kind, seed = model["kind"], model["seed"]
    if not model["cone"]:
        return source.trained(kind, "pairwise", seed, ALL_LAYERS)
    return source.trained(kind, source.found["chosen"].get(kind) or choose(source, kind), seed, LAYERS)


def main():
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    add_to = commands.add_parser("run").add_argument
    add_to("source", choices=SOURCES)
    add_to("--data", type=Path, required=True, help="folder of the collections")
    add_to("--work", type=Path, required=True, help="folder of the runs")
    add_to("--json", type=Path, required=True, help="what is measured")
    add_to("--steps", type=int, default=150, help="of the fine-tuning")
    commands.add_parser("show").add_argument("--json", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Whitening|Glow|Nice")
    if options.what == "run":
        options.json.parent.mkdir(parents=True, exist_ok=True)
        run(options)
    else:
        show([read_json(path) for path in options.json])


if __name__ == "__main__":
    main()
