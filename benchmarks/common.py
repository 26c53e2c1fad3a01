"""What benchmarks share: command lines, collections, how training queries are drawn and rows are trained."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from counterpoint.data import open_collection
from counterpoint.encode import DualEncoder, Encoder

TRAINING = ("squad11-dev", "nq-qed", "acl-title-abstract", "medquad")
EVALUATION = ("scifact", "cranfield", "cisi", "cacm", "med", "msmarco-v2-dl21-pool")


def parser_of(doc):
    """A parser whose help is the docstring of a script, as it was typed."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_commands(parser, *names):
    """Commands of a benchmark that trains rows: `train`, `evaluate` and others.

    Those two read the folder of the collections, and keep their runs in `--output`.
    """
    commands = parser.add_subparsers(dest="what", required=True)
    made = {name: commands.add_parser(name) for name in names}
    for command in (made["train"], made["evaluate"]):
        command.add_argument("data", type=Path, help="folder of the collections")
        command.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
        command.add_argument("--rows", nargs="+", metavar="NAME", help="only these, as the tables name them")
    made["train"].add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    return made


def read_json(path):
    """What a benchmark has saved; without it, or if it is damaged, the benchmark ends with a message."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: not a file that this benchmark has saved with --json ({error})")


def folder_of(name, output):
    """The folder of a row's run."""
    plain = name.replace("λ", "lambda").replace("α", "alpha")
    return output / re.sub(r"[^\w.+-]+", "-", plain).strip("-")


def joined_heads(models, texts=None, more=None):
    """One encoder with the heads of several models that share a backbone, so that texts are read once.

    Args:
        models: by name.
        texts: how queries and documents are read; those of the last model unless given.
        more: heads that no model has.

    Returns:
        The encoder, and by model how each of its heads is called in it.
    """
    heads, gates, shared, called = dict(more or {}), {}, {}, {}
    for number, (name, model) in enumerate(models.items()):
        encoder = model.encoder
        called[name] = now = {part: f"r{number}_{part}" for part in encoder.query.heads}
        for found, own in ((heads, encoder.query.heads), (gates, encoder.gates), (shared, encoder.shared)):
            found |= {now[part]: layer for part, layer in own.items()}
    last = encoder.query
    query, document = texts or (last.query, last.document)
    joined = Encoder(last.backbone, heads, query=query, document=document)
    return DualEncoder(joined, shared=shared, gates=gates), called


def training_collection(data, folder, names, queries_each, held_out=0):
    """Some training queries of each collection, some held out as `dev`, and the documents of all of them.

    Args:
        data: folder of the collections.
        folder: what is written, once; ids have their collection's name in front.
        names: of the collections.
        queries_each: how many are drawn of each, next to those that are held out.
        held_out: how many of each are held out.
    """
    drawn = {"names": list(names), "queries_each": queries_each, "held_out": held_out}
    record = folder.with_name(folder.name + ".json")
    if folder.is_dir():
        before = json.loads(record.read_text()) if record.is_file() else None
        if before not in (None, drawn):  # None: written before this was kept
            sys.exit(f"{folder} was drawn as {before}, not as {drawn}; choose another --output")
        return folder
    documents, queries, qrels = [], [], {"train": [], **({"dev": []} if held_out else {})}
    for name in names:
        source = open_collection(data / name, passage_words=None)
        judged, texts = source.qrels("train"), source.queries("train")
        count = min(queries_each + held_out, len(judged))
        chosen = random.Random(1).sample(sorted(judged), count)
        for at, query in enumerate(chosen):
            queries.append({"_id": f"{name}/{query}", "text": texts[query]})
            split = qrels["dev" if at < held_out else "train"]
            split += [f"{name}/{query}\t{name}/{d}\t{grade}\n" for d, grade in judged[query].items()]
        wanted = {document for query in chosen for document in judged[query]}
        documents += [
            {"_id": f"{name}/{document.id}", "title": "", "text": document.full_text}
            for document in source.documents()
            if document.id in wanted
        ]
    made = folder.with_name(folder.name + ".partial")
    (made / "qrels").mkdir(parents=True, exist_ok=True)
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (made / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for split, lines in qrels.items():
        text = "query-id\tcorpus-id\tscore\n" + "".join(lines)
        (made / "qrels" / f"{split}.tsv").write_text(text, encoding="utf-8")
    record.write_text(json.dumps(drawn))
    made.rename(folder)
    return folder


def train_rows(recipes, folder_of, arguments, *options):
    """Train rows by `counterpoint train`; those that start from another one wait for it.

    Args:
        recipes: by row.
        folder_of: from a row's name and `arguments.output` to the folder of its run; the recipe is next to
            it. A row with a model there is done, and one that was stopped goes on.
        arguments: of the command line: `output`, and `jobs`, runs at a time, one thread each where above 1.
        options: further options of `counterpoint train`: its data.
    """
    for first in (True, False):
        with ThreadPoolExecutor(arguments.jobs) as pool:
            waiting = [
                pool.submit(_train_row, name, recipe, folder_of(name, arguments.output), arguments, options)
                for name, recipe in recipes.items()
                if (recipe.start is None) == first
            ]
            for future in waiting:
                future.result()


def _train_row(name, recipe, folder, arguments, options):
    path = folder.with_name(folder.name + ".toml")
    if (folder / "model").is_dir():
        if path.is_file() and path.read_text(encoding="utf-8") != recipe.to_toml():
            sys.exit(f"{name} was trained by another recipe, {path}; choose another --output")
        return
    path.write_text(recipe.to_toml(), encoding="utf-8")
    command = [sys.executable, "-m", "counterpoint", "train", path, *options, "-o", folder]
    command += ["--memory", arguments.output / "memory"]
    command += ["--resume"] if folder.is_dir() else []
    threads = {} if arguments.jobs == 1 else {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    print(f"{name}: done", file=sys.stderr, flush=True)
