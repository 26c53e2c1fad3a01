"""Recipes, grids and options that cannot be carried out: refused before anything is built."""

import tomllib

import pytest
import tomli_w
from tests.cli.hostile import survives
from tests.cli.test_hostile_models import ODD, TOML, places, replaced
from tests.recipe.small import declared, write_collection

HUGE = 10**12


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_collection(tmp_path_factory.mktemp("hostile-learnable") / "data")


@pytest.fixture(scope="module")
def recipe(tiny_bert_folder):
    """A recipe as plain data that names every setting."""
    return tomllib.loads(declared(tiny_bert_folder).to_toml())


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


RECIPES = {name: text.replace("part", "recipe") for name, text in TOML.items() if isinstance(text, str)}
RECIPES |= {
    "not UTF-8": b"\xff\xfe",
    "another class": "format = 1\n[recipe]\npart = 'counterpoint.learn:Train'",
    "no class": "format = 1\n[recipe]\npart = 3",
    "a class of another's": "format = 1\n[recipe]\npart = 'os:system'",
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_file(name, data, tmp_path, capsys):
    path, run = write(tmp_path / "recipe.toml", RECIPES[name]), tmp_path / "run"
    for command in (("recipe", "check"), ("recipe", "show")):
        assert survives(capsys, *command, path, names=[path])[0] == 2
    trained = survives(capsys, "train", path, "--data", data, "-o", run, outputs=[run], names=[path])
    assert trained[0] == 2


PYTHON = {
    "a syntax error": "recipe = (",
    "an error": "1 / 0",
    "a recursion": "def f(): return f()\nrecipe = f()",
    "an exit": "import sys\nsys.exit(0)",
    "nothing": "",
    "another thing": "recipe = 3",
    "itself": "from counterpoint.recipe import load_recipe\nrecipe = load_recipe(__file__)",
    "a NUL": "recipe = 1\0",
    "not UTF-8": b"recipe = '\xff'",
    "deep": "recipe = " + "(" * 5000 + ")" * 5000,
    "variants": "from tests.recipe.small import declared\nrecipe = declared()\nvariants = 3",
}


@pytest.mark.parametrize("name", PYTHON)
def test_a_python_file(name, tmp_path, capsys):
    path = write(tmp_path / "mine.py", PYTHON[name])
    if name != "variants":
        assert survives(capsys, "recipe", "check", path, names=[path])[0] == 2
    assert survives(capsys, "recipe", "check", f"{path}:evil", names=[path])[0] == 2


SET = [
    "", "=", "seed", "seed=", "seed=x", "seed=1.5", "seed=nan", "seed=" + "9" * 5000, f"seed={2**63}",
    "stages=[]", "stages=1", "stages.0=1", "stages.-1.lr=1", "stages.9.lr=1", "stages.0.lr=nan",
    "stages.0.lr=inf", "stages.0.lr=1e999", "stages.0.lr=-1", "stages.0.lr=x", "stages.0.lr=[1]",
    "stages.0.batch=-1", "stages.0.batch=0", "stages.0.batch=1.5", f"stages.0.batch={HUGE}x",
    "stages.0.steps=-1", "stages.0.steps=0", "stages.0.steps=nan", "stages.0.epochs=nan",
    "stages.0.warmup=nan", "stages.0.warmup=-1", "stages.0.clip=nan", "stages.0.clip=-1", "stages.0.evil=1",
    "stages.0.schedule=evil", "stages.0.objective=3", "stages.0.objective.scale=nan", "stages.0.negatives=3",
    "stages.0.name=../x", "stages.0.name=", "stages.0.keep=worst", "stages.0.learn=[1]",
    "search.weights=x", "search.weights=nan", "search.weights={'mean': nan}", "search.weights={'mean': 'x'}",
    "search.weights.mean=nan", "search.weights.mean=inf", "search.weights.evil=1", "search.candidates=-1",
    "search.candidates=x", "search.scale=evil", "search.evil=1", "search.feedback=nan", "search.exact=x",
    "model=1", "model.codec=pickle", "model.analyzer=evil", "model.search.weights=x",
    "model.search.weights.mean=nan", "model.encoder.query.heads.tokens.projection.dim=8.5",
    "model.encoder.query.heads.tokens.projection.dim='8'", "model.encoder.query.heads.evil=1",
    "model.encoder.query.backbone.source=/nowhere", "model.encoder.query.backbone.layers=-1",
    "model.encoder.query.backbone.layers=[3,1]", "model.encoder.query.backbone.layers=x",
    "model.encoder.document.max_length=-1", "measures=[]", "measures=['evil']", "measures=['nDCG@0']",
    "measures=['nDCG@" + "9" * 5000 + "']", "measures=['P@-1']", "measures=[1]", "measures=x", "data.train=1",
    "data.held_out=-1", "data.depth=0", "data.relevant_from=0", "start=/nowhere", "start=1",
    "start_names={'a': 1}", "name=1", "name=" + "[" * 5000, "name=" + "(" * 100_000, "a" * 10_000 + "=1",
    "." * 1000 + "=1", "__class__=1", "stages.0.__init__=1", "stages.\u0663.lr=1", "name=\0",
]  # fmt: skip


# What can mean nothing; of the others the recipe may make sense, and nothing is a bug.
REFUSED = [
    text for text in SET if text.startswith(("search.", "model.search")) or "=nan" in text or "=inf" in text
]


@pytest.mark.parametrize("number", range(0, len(SET), 12))
def test_settings(number, recipe, tmp_path, capsys):
    path = write(tmp_path / "recipe.toml", tomli_w.dumps(recipe))
    for setting in SET[number : number + 12]:
        code, _, _ = survives(capsys, "recipe", "check", path, "--set", setting)
        assert code == 2 or setting not in REFUSED, setting


@pytest.mark.long
@pytest.mark.parametrize("name", ODD)
def test_every_place_of_a_recipe(name, recipe, tmp_path, capsys):
    path = tmp_path / "recipe.toml"
    for place in places(recipe["recipe"]):
        changed = {**recipe, "recipe": replaced(recipe["recipe"], place, ODD[name])}
        write(path, tomli_w.dumps(changed))
        survives(capsys, "recipe", "check", path)


GRIDS = {name: text for name, text in TOML.items() if isinstance(text, str)}
GRIDS |= {
    "not UTF-8": b"\xff",
    "models is a number": "models = 3",
    "models of numbers": "models = [3]",
    "a model without a name": "[[models]]\nevil = 1",
    "collections of numbers": "models = ['none']\ncollections = [3]",
    "no such collection": "models = ['none']\n[[collections]]\nname = 'a'\nsource = '/nowhere'",
    "measures of numbers": "measures = [3]",
    "measures": "measures = ['evil', 'nDCG@0', 'P@-1']",
    "k is nan": "k = nan",
    "k is huge": "k = 9223372036854775808",
    "k is text": "k = 'x'",
    "workflows": "workflows = ['evil', 3]",
    "weights are nan": "models = ['none']\n[search]\nweights = ['words=nan']",
    "weights are numbers": "models = ['none']\n[search]\nweights = [3]",
    "feedback": "[search]\nfeedback = ['nan', 'inf,5', '1,-1', 3]",
    "fusion": "[search]\nfusion = ['evil', 3]",
    "codec": "[index]\ncodec = ['pickle']",
    "k1": "[index]\nk1 = [nan, inf, -1, 'x']",
    "keep": "keep_encodings = 'yes'",
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid(name, tmp_path, capsys):
    path, output = write(tmp_path / "grid.toml", GRIDS[name]), tmp_path / "sweep"
    assert survives(capsys, "sweep", path, "-o", output, outputs=[output], names=[path])[0] == 2


# -- training data -------------------------------------------------------------------------------------

DEEP = "[" * 100_000
DATA = {
    "empty.tsv": "",
    "two.tsv": "a\tb\n",
    "nul.tsv": "\0\t\0\t\0\n",
    "latin.tsv": b"\xe9\t\xe9\t\xe9\n",
    "garbage.jsonl": "}{",
    "number.jsonl": "3",
    "deep.jsonl": DEEP,
    "digits.jsonl": '{"query": ' + "9" * 5000 + "}",
    "unknown.jsonl": '{"evil": 1}',
    "types.jsonl": '{"query": 1, "positive": 2, "negative": 3}',
    "lists.jsonl": '{"query": ["a"], "positive": [1], "negative": [null]}',
    "surrogate.jsonl": '{"query": "\\ud800", "positive": "a", "negative": "b"}',
    "inside.jsonl": '{"query": "q", "positive": "a", "negative": "' + DEEP + '"}',
    "ids.jsonl": "[1, 2]",
    "empty.json": "",
    "garbage.json": "}{",
    "object.json": "{}",
    "deep.json": DEEP,
    "digits.json": "[" + "9" * 5000 + "]",
    "latin.json": b"[\xe9]",
    "numbers.json": "[1, 2]",
    "dpr.json": '[{"question": 1, "positive_ctxs": 2}]',
    "contexts.json": '[{"question": "q", "answers": [], "positive_ctxs": [3], "negative_ctxs": null}]',
    "no positive.json": '[{"question": "q", "answers": [], "positive_ctxs": [], "negative_ctxs": []}]',
    "garbage.parquet": "PAR1garbagePAR1",
    "empty.parquet": "",
    "cut.jsonl.gz": b"\x1f\x8b\x08\0",
    "what.xml": "<a>",
}
IDS = {
    "types.tsv": "1\t2\n",
    "unknown.tsv": "nowhere\td1\td2\n",
    "numbers.jsonl": "[1.5, 2]",
    "unknown.jsonl": '["nowhere", "d1", "d2"]',
    "scores.jsonl": '["q1", ["d1", NaN], ["d2", 1]]',
    "huge.jsonl": '["q1", ["d1", ' + "9" * 400 + '], ["d2", 1]]',
    "text.jsonl": '["q1", ["d1", "x"], ["d2", true]]',
    "short.jsonl": '["q1"]',
    "empty.jsonl": "[]",
    "nested.jsonl": '["q1", [["d1"]], {"d2": 1}]',
    "kd.jsonl": '{"query_id": [], "document_ids": "' + DEEP + '", "scores": 3}',
    "more.jsonl": '{"query_id": "q1", "document_ids": ["d1", "d2"], "scores": [1]}',
    "inf.jsonl": '{"query_id": "q1", "document_ids": ["d1", "d2"], "scores": [1e999, 1]}',
    "surrogate.jsonl": '["\\ud800", "\\udfff"]',
}


@pytest.mark.parametrize("name", [*DATA, *(f"ids of {name}" for name in IDS)])
def test_training_data(name, recipe, data, tmp_path, capsys):
    file, ids = name.removeprefix("ids of "), name not in DATA
    path = write(tmp_path / file, IDS[file] if ids else DATA[file])
    run, declared_in = tmp_path / "run", write(tmp_path / "recipe.toml", tomli_w.dumps(recipe))
    more = ("--documents", data) if ids else ()
    names = [] if name in ("empty.tsv", "no positive.json") else [path]
    code, _, err = survives(
        capsys, "train", declared_in, "--data", path, *more, "-o", run, outputs=[run], names=names
    )
    assert code == 2, err
