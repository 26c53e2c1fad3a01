"""`counterpoint diagnose` as a user meets it."""

import json

import numpy as np
import pytest
import torch
from tests.cli.commands import fails
from tests.cli.conftest import DOCUMENTS

from counterpoint.cli.diagnosis.page import alignment_sentence
from counterpoint.cli.diagnosis.space import Space
from counterpoint.cli.sampling import Sample, sample_of
from counterpoint.encode import (
    DualEncoder,
    EncodeOptions,
    Encoder,
    Mean,
    TextInput,
    TokenVectors,
    Transformer,
)
from counterpoint.loading import load_model
from counterpoint.measure.alignment import kl_divergence, profile
from counterpoint.measure.inter_iso import inter_iso
from counterpoint.measure.isotropy import iso_score, partition_isotropy
from counterpoint.model import Model
from counterpoint.types import Ragged

LINES = [
    {"number": 0, "stage": "align", "step": 10, "loss": 3.0, "watch.mean.query.cosine": 0.5},
    {"number": 0, "stage": "align", "step": 20, "alignment.kl": 5.0, "alignment.delta": 7.8},
    {"number": 0, "stage": "align", "step": 20, "stopped": "aligned: KL 5 is below 7.8"},
    {"number": 1, "stage": "tune", "step": 10, "loss": 2.5, "watch.mean.query.cosine": 0.6},
    {"number": 1, "stage": "tune", "step": 20, "loss": 2.75},
    {"number": 1, "stage": "tune", "step": 0, "nDCG@10": 0.5, "AP": 0.25},
    {"number": 1, "stage": "tune", "step": 10, "nDCG@10": 0.75, "AP": 0.5},
    {"number": 1, "stage": "tune", "step": 20, "nDCG@10": 0.625, "AP": 0.375, "alignment.kl": 3.0},
]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory, tiny_bert_folder):
    """Two different encoders, one pooled set and one of tokens."""
    heads = [{"mean": Mean(normalise=True), "tokens": TokenVectors()} for _ in range(2)]
    layers = (3, 1)
    query, document = (
        Encoder(Transformer(str(tiny_bert_folder), layers=count), made)
        for count, made in zip(layers, heads, strict=True)
    )
    folder = tmp_path_factory.mktemp("models") / "model"
    Model(DualEncoder(query, document)).save(folder)
    return folder


@pytest.fixture
def training(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return folder


def test_the_numbers_are_those_of_the_measures(collection, model_folder, call):
    code, out, err = call("diagnose", model_folder, collection, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["split"] == "test" and set(found["sets"]) == {"mean", "tokens"} and "pictures" not in found
    texts = ["A whale is a mammal that lives in the sea.", "fox", "platform of the trains"]
    model = load_model(model_folder)
    queries = model.encode_query(texts[1:])["mean"].values
    side = found["sets"]["mean"]["query"]
    assert {name: side[name] for name in profile(queries).to_dict()} == pytest.approx(
        profile(queries).to_dict(), rel=1e-4
    )
    assert side["partition"] == pytest.approx(partition_isotropy(queries), rel=1e-4)
    assert side["iso_score"] == pytest.approx(iso_score(queries), rel=1e-4) and side["outliers"] == []
    assert found["sets"]["mean"]["document"]["rows"] == 4
    assert found["sets"]["mean"]["document"]["dimension"] == 16
    assert found["sets"]["tokens"]["document"]["rows"] > 20
    assert found["sets"]["mean"]["between"]["delta"] == 250 / 512 * 16
    assert isinstance(found["sets"]["mean"]["between"]["kl"], float)
    assert found["texts"] == {"queries": 2, "documents": 4, "pairs": 2, "from": "judged relevant in test"}
    relevant = [DOCUMENTS["fox"][1], DOCUMENTS["train"][1]]
    how = EncodeOptions(precision="fp32")
    tokens = model.encode_query(texts[1:], how)["tokens"], model.encode_document(relevant, how)["tokens"]
    expected = np.mean([inter_iso(tokens[0][at], tokens[1][at]) for at in range(2)])
    assert found["sets"]["tokens"]["inter_iso"]["together"] == pytest.approx(expected, rel=1e-4)
    assert found["sets"]["tokens"]["inter_iso"]["pairs"] == 2
    assert found["delta_inter_iso"] is None  # mean is pooled, so there is one set to speak of


def test_people_get_a_table_and_what_it_means(collection, model_folder, call):
    code, out, _ = call("diagnose", model_folder, collection, "--on", "mean")
    assert code == 0 and "tokens" not in out
    assert "2 queries, 4 documents drawn from all, 2 pairs (judged relevant in test)" in " ".join(out.split())
    for question in ("A cone?", "Collapsed?", "Outliers?", "The two sides?", "Whitening?"):
        assert question in out
    assert "mean: one vector of 16 components per text" in out and "aligned" in out
    (header,) = [line for line in out.splitlines() if line.startswith("set ")]
    assert header.split()[:6] == ["set", "side", "rows", "dimension", "cosine", "I(W)"]
    assert max(len(line) for line in out.splitlines() if str(collection) not in line) <= 110


def test_sides_that_are_one_encoder_need_no_alignment(collection, tiny_bert_folder, call):
    code, out, _ = call("diagnose", tiny_bert_folder, collection, "--json")
    (found,) = json.loads(out)["sets"].values()
    assert code == 0 and found["between"]["kl"] is None
    said = " ".join(call("diagnose", tiny_bert_folder, collection)[1].split())
    assert "Both sides encode queries to the same vectors" in said


def test_pictures_of_a_model_and_of_a_training(collection, model_folder, training, call, tmp_path):
    folder = tmp_path / "pictures"
    code, out, err = call(
        "diagnose", model_folder, collection, "--plots", folder, "--format", "svg", "--seed", "1"
    )
    assert code == 0, err
    kinds = ("pca-{}", "spectrum-{}", "pca-{}-whitened", "components-{}")
    names = {f"{kind.format(name)}.svg" for kind in kinds for name in ("mean", "tokens")} | {"scores.svg"}
    assert {path.name for path in folder.iterdir()} == names
    code, out, err = call("diagnose", training, "--plots", folder, "--json")
    assert code == 0, err
    drawn = json.loads(out)["pictures"]
    names = ["measures.png", "loss.png", "divergence.png", "cosine.png"]
    assert [name.rsplit("/", 1)[1] for name in drawn] == names
    assert all((folder / name.rsplit("/", 1)[1]).read_bytes().startswith(b"\x89PNG") for name in drawn)


def test_a_training_stage_by_stage(training, call):
    code, out, _ = call("diagnose", training, "--json")
    assert code == 0
    assert json.loads(out)["stages"] == [
        {
            "stage": "align",
            "steps": 20,
            "first_loss": 3.0,
            "lowest_loss": 3.0,
            "last_loss": 3.0,
            "stopped": "aligned: KL 5 is below 7.8",
        },
        {
            "stage": "tune",
            "steps": 20,
            "first_loss": 2.5,
            "lowest_loss": 2.5,
            "last_loss": 2.75,
            "stopped": None,
        },
    ]
    assert json.loads(out)["measures"] == {
        "AP": [[20, 0.25], [30, 0.5], [40, 0.375]],
        "nDCG@10": [[20, 0.5], [30, 0.75], [40, 0.625]],
    }
    out = call("diagnose", training)[1]
    assert "nDCG@10: 0.5000 at step 20, at best 0.7500 at step 30" in out
    assert "aligned: KL 5 is below 7.8" in out and "2.7500" in out and "–" in out


def test_a_run_with_its_model(collection, model_folder, training, call):
    (training / "recipe.toml").touch()
    (training / "model").symlink_to(model_folder)
    code, out, err = call("diagnose", training, collection, "--on", "mean", "--json")
    assert code == 0, err
    assert {"stages", "sets"} <= json.loads(out).keys()


def test_a_sample_is_drawn_evenly_and_keeps_queries_with_their_documents(tmp_path):
    folder = tmp_path / "many"
    (folder / "qrels").mkdir(parents=True)
    count = 300
    corpus = [json.dumps({"_id": f"d{at}", "title": "", "text": f"text {at}"}) for at in range(count)]
    (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n")
    queries = [json.dumps({"_id": f"q{at}", "text": f"query {at}"}) for at in range(100)]
    (folder / "queries.jsonl").write_text("\n".join([*queries, '{"_id": "same", "text": "Query 3?"}']) + "\n")
    judged = [f"q{at}\td{at}\t1\nq{at}\td{at + 100}\t0" for at in range(100)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    places = []
    for seed in range(40):
        found = sample_of(str(folder), None, 20, seed)
        assert len(set(found.queries)) == len(set(found.documents)) == 20 and found.split == "test"
        numbers = {text.split()[1] for text in found.queries.values()}
        assert {text.split()[1] for text in found.matching.values()} == numbers
        for text, other in zip(found.documents.values(), found.other, strict=True):
            assert other == (text.split()[1] not in numbers)
        places += [int(text.split()[1]) for text in found.documents.values()]
        assert len(found.pairs()) == 20
        queries, texts = list(found.queries), list(found.texts)
        assert all(texts[document] == "d" + queries[query][1:] for query, document in found.pairs())
    mean = np.mean(places)  # of 800 draws from 0 to 299: standard error 86.6 / √800
    assert abs(mean - 149.5) < 4 * 86.6 / np.sqrt(800)
    assert sample_of(str(folder), None, 20, 0) == sample_of(str(folder), None, 20, 0)
    assert sample_of(str(folder), None, 20, 0) != sample_of(str(folder), None, 20, 1)


def test_without_judgements_pairs_are_those_of_bm25(collection, model_folder, call, tmp_path):
    (collection / "qrels" / "test.tsv").unlink()
    found = sample_of(str(collection), None, 10, 0)
    assert found.split is None and found.pairing() == "best by BM25"
    assert found.grades["q1"] == {"fox": 1} and found.grades["q2"] == {"train": 1}
    assert "q3" not in found.grades or not found.grades["q3"]  # no document has a word of it
    arguments = ("diagnose", model_folder, collection, "--plots", tmp_path / "p", "--on", "mean", "--json")
    code, out, err = call(*arguments)
    assert code == 0, err
    mean = json.loads(out)["sets"]["mean"]
    assert json.loads(out)["split"] is None and mean["query"]["rows"] == 3
    assert mean["whitening"]["half"]["ranking"] is None
    assert mean["whitening"]["advice"] in ("leave", "half")  # whole only by a ranking
    assert mean["inter_iso"]["from"] == "best by BM25" and mean["whitening"]["ranking"] is None


def test_every_layer(collection, model_folder, tiny_bert_folder, call, tmp_path):
    """The query side has three layers, the document side one, so their states are not comparable."""
    plots = ("--plots", tmp_path / "p", "--on", "mean", "--layers")
    code, out, err = call("diagnose", model_folder, collection, *plots, "--json")
    assert code == 0, err
    found = json.loads(out)["layers"]
    assert [layer["layer"] for layer in found["layers"]] == [0, 1, 2, 3] and found["against"] is None
    assert found["texts"] == {"queries": 2, "documents": 2, "pairs": 2}
    assert found["layers"][3]["document"] is None and found["layers"][1]["inter_iso"] is None
    assert (tmp_path / "p" / "layers.png").exists() and not (tmp_path / "p" / "layers-against.png").exists()
    code, out, err = call("diagnose", tiny_bert_folder, collection, *plots, "--against", tiny_bert_folder)
    assert code == 0, err
    lines = out.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("layer ")]
    assert lines[at].split()[-1] == "difference" and lines[at + 4].split()[0] == "3"
    assert all(line.split()[-1] in ("0.0000", "–") for line in lines[at + 1 : at + 5])
    assert fails(call("diagnose", tiny_bert_folder, "--layers"), "name a COLLECTION")


def test_layers_against_another_model(collection, tiny_bert_folder, call, tmp_path):
    torch.manual_seed(5)
    other = tmp_path / "other"
    Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder), random=True), {"mean": Mean()}))).save(other)

    def layers(model, *more):
        code, out, err = call("diagnose", model, collection, "--layers", *more, "--json")
        assert code == 0, err
        return json.loads(out)["layers"]["layers"]

    ours, theirs = layers(tiny_bert_folder, "--against", other, "--plots", tmp_path), layers(other)
    for layer, base in zip(ours, theirs, strict=True):
        expected = np.log(layer["inter_iso"] / base["inter_iso"])
        assert layer["log_difference"] == pytest.approx(expected, rel=1e-3) and abs(expected) > 1e-3
    assert (tmp_path / "layers-against.png").exists()


def space(queries, documents, crossed):
    def packed(rows):
        return Ragged(rows, np.arange(len(rows) + 1))

    texts = {f"q{at}": "" for at in range(len(queries))}, {f"d{at}": "" for at in range(len(documents))}
    sample = Sample(*texts, {}, {}, None)
    return Space("cls", True, sample, packed(queries), packed(documents), packed(crossed), 0)


def test_rows_that_repeat_do_not_make_the_sides_look_apart():
    rng = np.random.default_rng(0)
    query, crossed = rng.normal(size=(2, 40, 6)).astype(np.float32)
    once = space(query, query, crossed).numbers()["between"]["kl"]
    twice = space(query, query, np.concatenate([crossed, crossed])).numbers()["between"]["kl"]
    assert twice == pytest.approx(once)


def test_one_positive_component_has_no_spread_to_compare_with():
    """As Uni-ColBERTer's words: every two rows have cosine 1."""
    rows = np.random.default_rng(0).uniform(0.1, 1, (60, 1)).astype(np.float32)
    assert space(-rows[:40], rows[40:], rows[:40]).numbers()["between"]["room"] == 1.0


def test_mistakes(collection, model_folder, training, call, tmp_path):
    assert fails(call("diagnose", model_folder), "not a training run", "name a COLLECTION")
    assert fails(call("diagnose", model_folder, collection, "--on", "cls"), "--on cls", "mean, tokens")
    assert fails(call("diagnose", model_folder, collection, "--split", "dev"), "dev", "test")
    assert fails(call("diagnose", model_folder, tmp_path / "nowhere"), "no such file")
    assert fails(call("diagnose", model_folder, collection, "--sample", "2"), "sample")
    assert fails(call("diagnose", model_folder, collection, "--seed", "-1"), "--seed")
    (tmp_path / "file").write_text("")
    for plots in ("file", "file/inside"):
        found = call("diagnose", model_folder, collection, "--plots", tmp_path / plots)
        assert fails(found, "cannot write", "file") and "encoding" not in found[2]
    metrics = training / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + '{"number": 1, "st')  # being written
    assert call("diagnose", training)[0] == 0
    for broken in (b'{"step": 3}\n', b'{"number": 0, "step": 3}\n', b"\xff\xfe\n", b"3\n"):
        metrics.write_bytes(whole.encode() + broken)
        assert fails(call("diagnose", training), "metrics.jsonl:9", "not a line of metrics")
    metrics.write_text("")
    assert fails(call("diagnose", training), "only begun")
    (collection / "queries.jsonl").write_text('{"_id": "q1", "text": "fox"}\n{"_id": "q2", "text": "Fox!"}\n')
    assert fails(call("diagnose", model_folder, collection), "1 different queries and 4 documents")


def test_tokens_of_a_collection(collection, call):
    code, out, err = call("diagnose", "--tokens", collection, "--stem", "nltk", "--json")
    assert code == 0, err
    found = json.loads(out)
    counts = found["tokens"]
    assert found["stem"] == "nltk" and counts["texts"] == 4
    order = [counts[name] for name in ("pieces", "words", "unique_words", "unique_stems")]
    assert order == sorted(order, reverse=True) and counts["pieces"] >= counts["unique_pieces"] > 0
    code, out, _ = call("diagnose", "--tokens", collection)
    assert code == 0 and "unique, snowball" in out and "%" in out


def test_neither_a_model_nor_tokens(call):
    assert fails(call("diagnose"), "name a MODEL", "--tokens COLLECTION")


def test_queries_at_one_point_are_not_called_aligned():
    rng = np.random.default_rng(0)
    crossed = rng.normal(size=(300, 256))
    point = rng.normal(size=256) + 0.01 * rng.normal(size=(300, 256))
    found = space(point, crossed, crossed).numbers()["between"]
    assert found["kl"] < found["delta"] and found["room"] < 0.01
    said = alignment_sentence(found)
    assert said.endswith("not aligned, as the query side has 0% of the document side's spread")
    found = space(crossed + 0.1 * rng.normal(size=crossed.shape), crossed, crossed).numbers()["between"]
    assert alignment_sentence(found).endswith(": aligned")


def test_rows_that_coincide_are_no_alignment():
    """Equal encoders but for a few texts: the estimate is thousands below 0, and says nothing."""
    rng = np.random.default_rng(0)
    crossed = rng.normal(size=(200, 128)).astype(np.float32)
    query = crossed + np.float32(1e-7) * rng.normal(size=crossed.shape).astype(np.float32)
    query[0] += 1
    assert kl_divergence(crossed, query) < -1000
    found = space(query, crossed, crossed).numbers()["between"]
    assert (found["kl"], found["coincident"], found["compared"]) == (None, 199, 200)
    said = alignment_sentence(found)
    assert said == "KL of the sides on queries cannot be estimated: 199 of 200 rows coincide with another"
    found = space(crossed, crossed, np.ones_like(crossed)).numbers()["between"]
    assert found["kl"] is None and "200 of 200 rows coincide" in alignment_sentence(found)
    query = crossed + 0.1 * rng.normal(size=crossed.shape).astype(np.float32)
    query[:2] = crossed[:2]
    found = space(query, crossed, crossed).numbers()["between"]
    ratios = _nearest(crossed, query)[2:] / _nearest(crossed, crossed)[2:]
    expected = 128 * np.log(ratios).mean() + np.log(200 / 199)
    assert found["coincident"] == 2 and found["kl"] == pytest.approx(expected, rel=1e-4)
    assert "without 2 rows that coincide is" in alignment_sentence(found)


def test_sides_that_differ_in_length_only_coincide_on_short_queries(
    collection, tiny_bert_folder, call, tmp_path
):
    """One encoder whose queries are cut: all of them are what they are as documents, but the one that is."""
    texts = [
        f"where is the {what} {who}" for what in ("red", "blue") for who in ("cat", "dog", "mat", "house")
    ]
    rows = [
        {"_id": f"n{at}", "text": text} for at, text in enumerate([*texts, f"{texts[0]} and {texts[-1]}"])
    ]
    (collection / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (collection / "qrels" / "test.tsv").unlink()
    encoder = Encoder(
        Transformer(str(tiny_bert_folder)),
        {"mean": Mean(normalise=True)},
        query=TextInput(9),
        document=TextInput(64),
    )
    Model(DualEncoder(encoder)).save(tmp_path / "model")
    code, out, err = call("diagnose", tmp_path / "model", collection)
    assert code == 0, err
    said = " ".join(out.split())
    assert "KL of the sides on queries cannot be estimated: 8 of 9 rows coincide with another." in said
    assert "aligned" not in said


def _nearest(x, y):
    """The distance of each row of x to the nearest other row of y, pair by pair."""
    apart = np.linalg.norm(x[:, None].astype(float) - y[None], axis=2)
    return np.where(apart == 0, np.inf, apart).min(1)
