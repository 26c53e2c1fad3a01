"""A training collection put together from some of several collections' queries; all benchmarks draw alike."""

import json
import random

from counterpoint.data import open_collection


def training_collection(data, folder, names, queries_each, held_out=0):
    """Some training queries of each collection, some held out as `dev`, and the documents of all of them.

    Args:
        data: folder of the collections.
        folder: what is written, once; ids have their collection's name in front.
        names: of the collections.
        queries_each: how many are drawn of each, beside those that are held out.
        held_out: how many of each are held out.
    """
    if folder.is_dir():
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
    made.rename(folder)
    return folder
