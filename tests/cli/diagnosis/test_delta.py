"""ΔInterIso: which set is H and which L, over which pairs, and its sign; worked by hand."""

import json

import numpy as np
import pytest
import torch
from tests.cli.commands import fails
from tests.encode.tiny import VOCABULARY

from counterpoint.cli.diagnosis.delta import Ends, Retrieved, delta_of, ends_of, retrieved_of
from counterpoint.cli.diagnosis.space import Space
from counterpoint.cli.sampling import DEPTH, Sample, sample_of
from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, Static, TokenVectors, Transformer
from counterpoint.errors import ConfigError
from counterpoint.index import VectorSet
from counterpoint.model import Model
from counterpoint.types import Ragged

# Rows of a Hadamard matrix: orthogonal, of mean 0 and variance 1, which layer norm leaves as they are. Their
# component 1 is 1 in even rows and −1 in odd ones.
ROW = {"[CLS]": 2, "[SEP]": 4, "cat": 6, "dog": 8, "blue": 10, "mat": 1, "house": 3, "red": 5}
TEXTS = {"d1": "cat mat", "d2": "dog house", "d3": "red blue"}
QUERIES = {"q1": "cat", "q2": "house mat"}
JUDGED = {"q1": "d3", "q2": "d2"}


def by_hand(folder, sets=("l", "h")):
    """L: a token's own direction, so 1 for equal tokens and 0 for others. H: the sign of component 1."""
    matrix = np.ones((1, 1))
    for _ in range(4):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    heads = {"l": Static(normalise=True), "mean": Mean()}
    signs = [on for on in sets if on not in heads]
    heads |= {on: TokenVectors(projection=Linear(1, bias=False), normalise=True) for on in signs}
    model = Model(DualEncoder(Encoder(Transformer(str(folder), layers=0), {on: heads[on] for on in sets})))
    model.setup()
    made = model.encoder.query.backbone.model_.embeddings
    with torch.no_grad():
        for token, row in ROW.items():
            made.word_embeddings.weight[VOCABULARY.index(token)] = torch.from_numpy(matrix[row])
        for table in (made.position_embeddings, made.token_type_embeddings):
            table.weight.zero_()
        for on in signs:
            model.encoder.query.heads[on].projection.linear_.weight.copy_(torch.eye(16)[1:2])
    return model


@pytest.fixture
def written(tmp_path):
    folder = tmp_path / "collection"
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = [json.dumps({"_id": id_, "title": "", "text": text}) + "\n" for id_, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("".join(rows))
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{d}\t1" for query, d in JUDGED.items())]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


def test_h_less_l_over_the_documents_of_bm25(tiny_bert_folder, written, call, tmp_path):
    """Worked by hand, with [CLS] and [SEP]:

    | pair          | signs of H: query, document | H         | equal tokens: L | H − L  |
    |---------------|-----------------------------|-----------|-----------------|--------|
    | q1 d1, BM25   | + + + and + + − +           | 1 · 1/2   | 3 of 12         | 1/4    |
    | q2 d1, BM25   | + − − + and + + − +         | 0 · 1/2   | 3 of 16         | −3/16  |
    | q2 d2, BM25   | + − − + and + + − +         | 0 · 1/2   | 3 of 16         | −3/16  |
    | q1 d3, judged | + + + and + − + +           | 1 · 1/2   | 2 of 12         | 1/3    |
    | q2 d2, judged | as above                    |           |                 | −3/16  |

    So −1/24 over BM25's three pairs and 7/96 over the two judged ones: not even of one sign.
    """
    by_hand(tiny_bert_folder).save(tmp_path / "model")
    code, out, err = call("diagnose", tmp_path / "model", written, "--json")
    assert code == 0, err
    assert json.loads(out)["delta_inter_iso"] == {
        "high": "h",
        "low": "l",
        "delta": pytest.approx(-1 / 24, abs=1e-6),
        "pairs": 3,
        "from": "BM25's first 100 documents of a query",
        "judged": {"delta": pytest.approx(7 / 96, abs=1e-6), "pairs": 2, "from": "judged relevant in test"},
    }
    named = call("diagnose", tmp_path / "model", written, "--json", "--high", "l")[1]
    turned = json.loads(named)["delta_inter_iso"]
    assert (turned["high"], turned["low"]) == ("l", "h") and turned["delta"] == pytest.approx(
        1 / 24, abs=1e-6
    )
    said = " ".join(call("diagnose", tmp_path / "model", written)[1].split())
    assert (
        "ΔInterIso = InterIso of h − of l = −0.04 over 3 pairs (BM25's first 100 documents of a query); "
        "0.07 over 2 pairs (judged relevant in test)."
    ) in said


def test_every_number_over_the_documents_of_bm25(tiny_bert_folder, written, call, tmp_path):
    """`--pairs bm25`: H is 1/2, 0 and 0 by the table above, L 1/4, 3/16 and 3/16; layers go by them, too."""
    by_hand(tiny_bert_folder).save(tmp_path / "model")
    arguments = ("--pairs", "bm25", "--layers", "--plots", tmp_path / "plots", "--json")
    code, out, err = call("diagnose", tmp_path / "model", written, *arguments)
    assert code == 0, err
    found = json.loads(out)
    said = {"pairs": 3, "from": "BM25's first 100 documents of a query"}
    assert found["split"] == "test" and found["texts"]["pairs"] == 3
    for on, value in (("h", 1 / 6), ("l", (1 / 4 + 3 / 16 + 3 / 16) / 3)):
        numbers = found["sets"][on]["inter_iso"]
        assert numbers["together"] == pytest.approx(value, abs=1e-6) and said.items() <= numbers.items()
    assert found["layers"]["from"] == said["from"] and found["layers"]["texts"]["pairs"] == 3
    assert found["delta_inter_iso"]["delta"] == pytest.approx(-1 / 24, abs=1e-6)
    assert found["delta_inter_iso"]["judged"] is None and (tmp_path / "plots" / "scores.png").is_file()


def test_without_judgements_there_are_the_documents_of_bm25(tiny_bert_folder, written, call, tmp_path):
    (written / "qrels" / "test.tsv").unlink()
    by_hand(tiny_bert_folder).save(tmp_path / "model")
    found = json.loads(call("diagnose", tmp_path / "model", written, "--json")[1])["delta_inter_iso"]
    assert found["delta"] == pytest.approx(-1 / 24, abs=1e-6) and found["judged"] is None


def test_sets_that_do_not_say_which_is_which_are_to_be_named(tiny_bert_folder, written, call, tmp_path):
    folder = tmp_path / "model"
    by_hand(tiny_bert_folder, ("iso", "aniso", "mean")).save(folder)
    code, out, err = call("diagnose", folder, written)
    assert code == 0, err
    said = " ".join(out.split())
    assert "ΔInterIso: say which of iso, aniso is anisotropic (--high) and which is not (--low)" in said
    assert json.loads(call("diagnose", folder, written, "--json")[1])["delta_inter_iso"] is None
    found = json.loads(call("diagnose", folder, written, "--json", "--low", "iso")[1])["delta_inter_iso"]
    assert found["high"] == "aniso" and found["delta"] == pytest.approx(0, abs=1e-6)
    assert fails(call("diagnose", folder, written, "--high", "h"), "--high h", "iso, aniso, mean")
    assert fails(call("diagnose", folder, written, "--high", "iso", "--low", "iso"), "both name iso")
    assert fails(call("diagnose", folder, written, "--on", "iso", "--low", "iso"), "--on selects one")


def sets(**kinds):
    known = {"pooled": (True, False), "static": (False, True), "rows": (False, False)}
    return {name: VectorSet(4, known[kind][0], True, known[kind][1], ()) for name, kind in kinds.items()}


@pytest.mark.parametrize(
    ("made", "named", "expected"),
    [
        (sets(l="static", h="rows"), (None, None), ("h", "l")),
        (sets(h="rows", cls="pooled", words="static"), (None, None), ("h", "words")),
        (sets(iso="rows", aniso="rows"), (None, None), None),
        (sets(one="static", two="static"), (None, None), None),
        (sets(l="static", h="rows", k="rows"), (None, None), None),
        (sets(l="static", h="rows", k="rows"), ("k", None), None),
        (sets(l="static", h="rows", k="rows"), ("k", "l"), ("k", "l")),
        (sets(iso="rows", aniso="rows"), ("aniso", None), ("aniso", "iso")),
        (sets(l="static", h="rows"), (None, "h"), ("l", "h")),
        (sets(mean="pooled", h="rows"), (None, None), None),
    ],
)
def test_which_set_is_h_and_which_is_l(made, named, expected):
    assert ends_of(made, *named) == (None if expected is None else Ends(*expected))


def test_a_name_that_is_no_set():
    with pytest.raises(ConfigError, match="--low x: no such vector set; the model has l, h"):
        ends_of(sets(l="static", h="rows"), None, "x")


def test_pairs_are_drawn_from_all_that_bm25_finds(tmp_path):
    """120 documents have the query's word: the first 100 are found, and no more pairs than the sample has."""
    folder = tmp_path / "many"
    folder.mkdir()
    rows = [{"_id": f"d{at}", "text": "fox " * (at % 7 + 1)} for at in range(120)] + [
        {"_id": "none", "text": "dog"}
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [
        {"_id": "q1", "text": "fox"},
        {"_id": "q2", "text": "of foxes"},
        {"_id": "q3", "text": "whale"},
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    sample = sample_of(str(folder), None, 500, 0)
    found = retrieved_of(str(folder), sample, 500, 0)
    assert len(found.pairs) == 2 * DEPTH and {query for query, _ in found.pairs} == {0, 1}
    assert "none" not in found.texts and set(found.texts.values()) <= {"fox " * n for n in range(1, 8)}
    some = retrieved_of(str(folder), sample, 30, 0)
    assert len(some.pairs) == 30 and len(set(some.pairs)) == 30 and len(some.texts) <= 30
    names = [list(some.texts)[document] for _, document in some.pairs]
    everything = {(query, list(found.texts)[document]) for query, document in found.pairs}
    assert {(query, name) for (query, _), name in zip(some.pairs, names, strict=True)} <= everything
    assert retrieved_of(str(folder), sample, 30, 1).pairs != some.pairs


def test_texts_without_rows_and_sets_that_are_missing():
    rows = [np.array([[1.0, 0.0]], np.float32), np.zeros((0, 2), np.float32)]
    packed = Ragged.from_list(rows, dim=2)
    sample = Sample({"q1": "", "q2": ""}, {"d1": "", "d2": ""}, {}, {}, None)
    spaces = {name: Space(name, False, sample, packed, packed, packed, 0) for name in "hl"}

    class Encodes:
        def encode_document(self, texts, options):
            return dict.fromkeys("hl", packed)

    pairs = Retrieved({"d1": "", "d2": ""}, [(0, 0), (0, 1), (1, 0)])
    found = delta_of(Encodes(), spaces, Ends("h", "l"), pairs)
    assert (found["delta"], found["pairs"]) == (0.0, 1)
    assert delta_of(Encodes(), spaces, Ends("h", "l"), Retrieved({}, []))["delta"] is None
    assert delta_of(Encodes(), {"h": spaces["h"]}, Ends("h", "l"), pairs) is None
