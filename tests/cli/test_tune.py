"""`counterpoint tune`: weight by weight what evaluate measures, and the index remembers the best."""

import json
import shlex
from itertools import product

import pytest
from tests.cli.commands import fails
from tests.fakes import HashModel

from counterpoint.cli.main import main
from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Index, IndexSettings, build_index, keep_search
from counterpoint.measure import all_shares, evaluate, tune_shares, tune_weight
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document

TEXTS = {"a": "red fox", "b": "red red dog", "c": "blue dog house", "d": "fox", "e": "a blue house at sea"}
QUERIES = {"q1": "red dog", "q2": "blue sea", "q3": "fox house"}
QRELS = {"q1": {"c": 1}, "q2": {"e": 1}, "q3": {"a": 1, "d": 1}}


@pytest.fixture
def searcher(tmp_path):
    model = HashModel()
    search = SearchSettings(weights={"lexical": 1.0, "mean": 1.0}, scale="none")
    settings = IndexSettings(sets=("mean",), codec="float32", search=search.to_dict())
    build_index((Document(*row) for row in TEXTS.items()), model, tmp_path / "index", settings)
    with Index(tmp_path / "index") as index:
        yield Searcher(index, model)


def score_of(searcher, query, document, weight):
    """BM25 + λ·dense, from each half by itself."""
    halves = searcher.rank_parts({"q": query}, len(TEXTS), ["lexical", "mean"])
    return halves["lexical"].scores("q").get(document, 0.0) + weight * halves["mean"].scores("q")[document]


def test_every_weight_is_measured_as_evaluate_does_and_the_best_is_chosen(searcher):
    grid = [0.0, 0.5, 1.0, 4.0]
    found = tune_weight(searcher, QUERIES, QRELS, grid)
    assert found.part == "mean" and list(found.values) == grid
    for weight, value in found.values.items():
        settings = SearchSettings(weights={"lexical": 1.0, "mean": weight}, scale="none")
        run = Searcher(searcher.index, searcher.model, settings).run(QUERIES)
        assert value == evaluate(run, QRELS, ["AP"]).measures["AP"]
    assert len(set(found.values.values())) > 1
    assert found.values[found.weight] == max(found.values.values())
    assert found.settings.weights == {"lexical": 1.0, "mean": found.weight}
    assert found.settings.scale == "none"


def test_the_score_is_bm25_plus_lambda_dense_for_the_union_of_both(searcher):
    """A document that one half did not propose has its real score by it."""
    few = SearchSettings(weights={"lexical": 1.0, "mean": 1.5}, scale="none", candidates=1)
    run = Searcher(searcher.index, searcher.model, few).run(QUERIES, 1)
    wide = Searcher(searcher.index, searcher.model, SearchSettings(few.weights, scale="none")).run(QUERIES, 5)
    for query, text in QUERIES.items():
        for document, score in [*run[query], *wide[query]]:
            assert score == pytest.approx(score_of(searcher, text, document, 1.5), abs=1e-5)
    assert len(wide["q1"]) == 5


def test_lambda_0_is_bm25_alone(searcher):
    found = tune_weight(searcher, QUERIES, QRELS, [0.0])
    alone = searcher.run(QUERIES, workflow="lexical")
    assert found.values[0.0] == evaluate(alone, QRELS, ["AP"]).measures["AP"]
    assert found.at_the_edge


def test_the_first_of_equals_is_chosen(searcher):
    assert tune_weight(searcher, QUERIES, QRELS, [100.0, 200.0, 300.0]).weight == 100.0


def test_queries_are_encoded_once(searcher, monkeypatch):
    calls = []
    encode = searcher.model.encode_document
    monkeypatch.setattr(
        type(searcher.model), "encode_query", lambda self, texts: calls.append(texts) or encode(texts)
    )
    tune_weight(searcher, QUERIES, QRELS, [0.0, 1.0, 2.0])
    assert len(calls) == 1


def test_all_shares_are_measured_as_evaluate_does_and_the_best_is_chosen(tmp_path):
    search = SearchSettings(weights={"lexical": 1.0, "mean": 1.0, "words": 1.0}, candidates=2).to_dict()
    documents = [Document(*row) for row in TEXTS.items()]
    build_index(documents, HashModel(), tmp_path / "three", IndexSettings(codec="float32", search=search))
    told = []
    with Index(tmp_path / "three") as index:
        searcher = Searcher(index, HashModel())
        found = tune_shares(searcher, QUERIES, QRELS, 4, depth=2, on_progress=told.append)
        assert told == list(range(1, 16)) and len(found.values) == 15  # two bars among six places
        for shares, value in found.values.items():
            assert sum(shares) == 1 and all(share * 4 in range(5) for share in shares)
            weights = dict(zip(found.parts, shares, strict=True))
            run = Searcher(index, HashModel(), SearchSettings(weights, candidates=2)).run(QUERIES, 2)
            assert value == evaluate(run, QRELS, ["AP"]).measures["AP"]
        assert len(set(found.values.values())) > 1
        assert found.values[found.shares] == max(found.values.values())
        assert tuple(found.settings.weights.values()) == found.shares
        two = SearchSettings({"lexical": 1.0, "mean": 0.0, "words": 3.0})
        assert tune_shares(Searcher(index, HashModel(), two), QUERIES, QRELS, 1).parts == ("lexical", "words")
        for steps, weights in ((0, {"lexical": 1.0, "mean": 1.0}), (3, {"mean": 1.0})):
            with pytest.raises(ConfigError, match="shares need at least two parts"):
                tune_shares(Searcher(index, HashModel(), SearchSettings(weights)), QUERIES, QRELS, steps)


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("least", [0, 1, 2, 6])
def test_all_shares_by_looking_at_every_tuple(parts, least):
    wanted = [
        tuple(count / 5 for count in counts)
        for counts in product(range(6), repeat=parts)
        if sum(counts) == 5 and min(counts) >= least
    ]
    assert list(all_shares(parts, 5, least)) == wanted


@pytest.mark.parametrize(
    ("grid", "part", "message"),
    [
        ([], None, "weights of at least 0"),
        ([-1.0], None, "weights of at least 0"),
        ([1.0], "words", "'words'"),
    ],
)
def test_what_cannot_be_tuned(searcher, grid, part, message):
    with pytest.raises(ConfigError, match=message):
        tune_weight(searcher, QUERIES, QRELS, grid, part)


def test_a_part_alone_cannot_be_tuned(searcher):
    alone = Searcher(searcher.index, searcher.model, SearchSettings(weights={"mean": 1.0}))
    with pytest.raises(ConfigError, match="no part other than 'mean' has a weight"):
        tune_weight(alone, QUERIES, QRELS, [1.0])


@pytest.fixture
def index(collection, tiny_bert_folder, tmp_path, capsys):
    folder = tmp_path / "index"
    assert main(["index", str(collection), "-o", str(folder), "--model", str(tiny_bert_folder)]) == 0
    capsys.readouterr()
    return folder


@pytest.fixture
def hard(collection):
    """A query that shares no word with its document, next to two that BM25 answers."""
    with open(collection / "qrels" / "test.tsv", "a") as file:
        file.write("q3\twhale\t1\n")


def test_the_index_remembers_what_was_chosen(index, collection, hard, call):
    ask = ("tune", index, collection, "--split", "test", "--fusion", "none", "--grid", "0:0.3:0.1", "--json")
    before = (index / "manifest.json").read_bytes()
    code, out, _ = call(*ask, "--weights", "lexical=1 mean=1", "--dry-run")
    dry = json.loads(out)
    assert code == 0 and not dry["kept"] and (index / "manifest.json").read_bytes() == before
    code, out, err = call(*ask, "--weights", "lexical=1 mean=1")
    found = json.loads(out)
    assert code == 0 and found["kept"] and found["values"] == dry["values"] and found["weight"] > 0
    assert list(found["values"]) == ["0", "0.1", "0.2", "0.3"]
    assert "edge of the grid" in call(*ask[:-2], "0:0.1:0.1", "--weights", "lexical=1 mean=1", "--dry-run")[2]
    with Index(index) as opened:
        kept = SearchSettings.for_index(opened)
    assert kept.weights == {"lexical": 1.0, "mean": found["weight"]} and kept.scale == "none"
    assert call("verify", index)[0] == 0
    code, out, _ = call("evaluate", collection, "--index", index, "--measures", "AP", "--json", "-k", 1000)
    assert json.loads(out)["measures"]["AP"] == found["values"][f"{found['weight']:g}"]
    code, out, _ = call(*ask[:-1])
    assert code == 0 and "best" in out and "the index now uses it" in out


def test_the_index_remembers_shares(index, collection, hard, call):
    ask = ("tune", index, collection, "--split", "test", "--shares", 4)
    code, out, err = call(*ask, "--json")
    found = json.loads(out)
    assert code == 0 and found["kept"] and set(found["shares"]) == {"lexical", "mean"}
    assert list(found["values"]) == [f"mean={i / 4:g} lexical={1 - i / 4:g}" for i in range(5)]
    with Index(index) as opened:
        assert SearchSettings.for_index(opened).weights == found["shares"] == found["search"]["weights"]
    for weights, value in found["values"].items():
        evaluated = call(
            "evaluate", collection, "--index", index, "--weights", weights, "--measures", "AP", "--json"
        )
        assert json.loads(evaluated[1])["measures"]["AP"] == value
    lines = call(*ask, "--weights", "lexical=1 mean=1", "--dry-run")[1].splitlines()
    values = [line.removesuffix("  best").rpartition("  ")[2] for line in lines[1:6]]
    assert lines[1].endswith("best") and values == sorted(values, reverse=True)
    assert lines[6].startswith("chosen on test")
    assert fails(call(*ask, "--weights", "lexical=1"), "two parts with a weight")
    zero = (*ask[:-2], "--fusion", "none", "--weights", "lexical=1", "--grid", "0:0:1", "--part", "mean")
    assert call(*zero, "--json")[0] == 0
    with Index(index) as opened:
        assert SearchSettings.for_index(opened).weights["mean"] == 0
    again = json.loads(call(*ask, "--json", "--dry-run")[1])  # of all parts, whatever was chosen before
    assert set(again["shares"]) == {"lexical", "mean"} and len(again["values"]) == 5
    for wrong, message in (
        (("--shares", 0), "1 or more"),
        (("--shares", 1000), "1,001 combinations"),
        (("--shares", 4, "--part", "mean"), "leave --part and --grid out"),
        (("--shares", 4, "--grid", "0:1:1"), "leave --part and --grid out"),
    ):
        assert fails(call(*ask[:-2], *wrong), message)


ADAPT = {"lexical": 1.0}


@pytest.fixture
def adapting(index, collection):
    """An index whose weights follow the query; of a query of unknown words, vectors choose."""
    with open(collection / "queries.jsonl", "a") as file:
        file.write('{"_id": "q4", "text": "whale of a qwertz on zorp"}\n')
    with open(collection / "qrels" / "test.tsv", "a") as file:
        file.write("q4\tfox\t1\nq4\ttrain\t1\n")
    keep_search(index, {"weights": {"lexical": 0.5, "mean": 0.5}, "adapt": ADAPT})
    return index


def stored(index):
    with Index(index) as opened:
        return SearchSettings.for_index(opened)


def measured(call, command):
    """The measure by the command that was printed."""
    code, out, _ = call(*shlex.split(command)[1:], "--json")
    assert code == 0
    return json.loads(out)["measures"]["AP"]


def test_weights_follow_the_query_after_tuning_as_before(adapting, collection, hard, call):
    """The value reported is that of the settings stored, and nothing of `adapt` is lost."""
    ask = ("tune", adapting, collection, "--split", "test", "--grid", "0:0.2:0.1")
    ask += ("--weights", "lexical=0.2 mean=0.1", "--json")
    tried = [json.loads(call(*ask, "--dry-run", each)[1])["values"] for each in ("--adapt", "--no-adapt")]
    assert tried[0] != tried[1]
    for options, adapts in (((), True), (("--no-adapt",), False), ((), False), (("--adapt",), True)):
        before = stored(adapting)
        dry = json.loads(call(*ask, *options, "--dry-run")[1])
        best = dry["values"][f"{dry['weight']:g}"]
        assert dry["adapts"] == adapts and ("--adapt" in dry["evaluate"]) == adapts
        assert stored(adapting) == before and measured(call, dry["evaluate"]) == best
        kept = json.loads(call(*ask, *options)[1])
        assert kept["values"] == dry["values"] and kept["adapts"] == adapts
        now = stored(adapting)
        assert now.to_dict() == kept["search"] and now.adapt == ADAPT and now.fixed_weights != adapts
        assert "--weights" not in kept["evaluate"] and measured(call, kept["evaluate"]) == best
        assert call("search", adapting, "whale", "--adapt")[0] == 0


def test_fixed_weights_are_said_with_how_to_adapt_again(adapting, collection, hard, call):
    ask = ("tune", adapting, collection, "--split", "test", "--grid", "0:0.2:0.1")
    assert "weights that follow each query (--adapt)" in call(*ask, "--dry-run")[1]
    out = call(*ask, "--no-adapt", "--dry-run")[1]
    assert "the same for every query (--no-adapt)" in out and "the index keeps how" not in out
    assert "search or tune with --adapt" in call(*ask, "--no-adapt")[1]


def test_the_command_that_measures_again_has_every_option(adapting, collection, hard, call):
    ask = ("tune", adapting, collection, "--split", "test", "--shares", 3, "--json", "-k", 2)
    for options in (
        ("--feedback", "0.5,1"),
        ("--fusion", "rrf", "--backend", "torch"),
        ("--measure", "AP", "--no-adapt", "--weights", "lexical=1 mean=1"),
    ):
        found = json.loads(call(*ask, *options, "--dry-run")[1])
        kept = json.loads(call(*ask, *options)[1])
        for command in (found["evaluate"], kept["evaluate"]):
            assert measured(call, command) == max(found["values"].values())


def test_a_part_that_does_not_help_is_said(index, collection, call):
    code, _, err = call(
        "tune", index, collection, "--split", "test", "--shares", 1, "--dry-run",
        "--measure", "NumRet",
    )  # fmt: skip
    assert code == 0 and "the best leaves out " in err and "; no share between 0 and 1/1 was tried" in err


def test_parts_that_the_best_shares_leave_out_are_named(index, collection, hard, call, monkeypatch):
    """A part is not named if equally good shares have it, nor is it said to be of no use."""
    ask = ("tune", index, collection, "--split", "test", "--shares", 2, "--dry-run")
    for values, said in (  # of lexical, of both, and of mean
        ([0.5, 0.4, 0.1], "the best leaves out mean; no share between 0 and 1/2"),
        ([0.5, 0.5, 0.1], ""),
    ):
        monkeypatch.setattr("counterpoint.measure.tuning._values", lambda *asked, values=values: values)
        code, _, err = call(*ask)
        assert code == 0 and said in err and ("leaves out" in err) == bool(said)


def test_one_weight_says_nothing_about_its_part(index, collection, call):
    ask = ("tune", index, collection, "--split", "test", "--fusion", "none", "--weights", "lexical=1")
    code, _, err = call(*ask, "--grid", "0:0:1", "--dry-run")
    assert code == 0 and "nothing was compared" in err and "does not help" not in err


def test_choosing_on_the_test_split_is_remarked(index, collection, hard, call):
    ask = ("tune", index, collection, "--grid", "0:0.2:0.1", "--dry-run", "--split")
    assert "weights chosen on test make figures on test too good" in call(*ask, "test")[2]
    (collection / "qrels" / "dev.tsv").write_text((collection / "qrels" / "test.tsv").read_text())
    assert "chosen on" not in call(*ask, "dev")[2]


def test_what_is_best_whose_weight_and_how_deep_are_asked_for(index, collection, hard, call):
    ask = ("tune", index, collection, "--split", "test", "--fusion", "none", "--grid", "0:2:0.5", "--json")
    ask += ("--weights", "lexical=1 mean=1", "--part", "lexical", "--measure", "RR", "-k", 1)
    found = json.loads(call(*ask, "--dry-run")[1])
    assert found["part"] == "lexical" and found["search"]["weights"]["mean"] == 1.0
    for weight, value in found["values"].items():
        how = ("--fusion", "none", "--weights", f"lexical={weight} mean=1", "--measures", "RR", "-k", 1)
        code, out, _ = call("evaluate", collection, "--index", index, *how, "--json")
        assert code == 0 and json.loads(out)["measures"]["RR"] == value


def test_a_grid_that_says_nothing_changes_nothing(index, collection, call):
    """One document is retrieved for each query at every weight."""
    ask = ("tune", index, collection, "--split", "test", "--grid", "0:1:0.5", "--measure", "NumRet", "-k", 1)
    before = (index / "manifest.json").read_bytes()
    assert fails(call(*ask), "at every weight that was tried", "the index is unchanged")
    assert (index / "manifest.json").read_bytes() == before
    assert fails(call(*ask, "--dry-run"), "at every weight that was tried", "nothing to choose by")
    shares = (*ask[:5], "--shares", 2, *ask[-4:], "--dry-run")
    assert fails(call(*shares), "at every weight that was tried", "nothing to choose by")


def test_nothing_relevant_at_any_weight(searcher):
    with pytest.raises(DataError, match="AP is 0 at every weight"):
        tune_weight(searcher, QUERIES, {"q1": {"elsewhere": 1}}, [0.0, 1.0])


@pytest.mark.parametrize(
    "grid", ["", "0:2", "a:b:c", "2:0:0.1", "0:2:0", "-1:2:0.1", "0:inf:1", "0:1:inf", "nan:1:1"]
)
def test_bad_grids(index, collection, call, grid):
    assert fails(call("tune", index, collection, f"--grid={grid}", "--split", "test"), "FROM:TO:STEP")


def test_weights_that_differ_in_the_seventh_digit(index, collection, hard, call, monkeypatch):
    monkeypatch.setattr("counterpoint.measure.tuning._values", lambda *asked: [0.1, 0.2, 0.3, 0.2, 0.1])
    ask = (
        "tune",
        index,
        collection,
        "--split",
        "test",
        "--grid",
        "100000:100001:0.25",
        "--dry-run",
        "--json",
    )
    values = json.loads(call(*ask)[1])["values"]
    assert list(values) == ["100000", "100000.25", "100000.5", "100000.75", "100001"]


def test_a_grid_of_too_many(index, collection, call):
    assert fails(
        call("tune", index, collection, "--grid=0:1:0.0001", "--split", "test"),
        "0:1:0.0001 has more than 1000 weights",
    )


def test_a_split_that_is_not_there_is_told(index, collection, call):
    assert fails(call("tune", index, collection), "dev")


def test_a_weight_below_0_has_no_share_of_a_ceiling(index, call):
    """Shares of −1 and +2 would turn the ranking upside down; of −1 and 1, there are none."""
    search = ("search", index, "whale", "--json", "--weights")
    for weights in ("lexical=1 mean=-1", "lexical=1 mean=-2"):
        assert fails(call(*search, weights), "mean=-", "below 0", "--fusion none")
    assert call(*search, "lexical=1 mean=-2", "--fusion", "none")[0] == 0
    assert fails(call(*search, "lexical=1 mean=1 lexical=2"), "lexical is given twice")
    for number in ("nan", "inf"):
        assert fails(call(*search, f"lexical=1 mean={number}"), f"found 'mean={number}'")
