"""What editors and notebooks show of the settings is what the options have."""

import inspect
from dataclasses import fields

import pytest

import counterpoint as cp
from counterpoint.data import Fields
from counterpoint.errors import ConfigError
from counterpoint.library import BuildOptions, OpenIndex, SearchOptions
from counterpoint.library.keywords import BuildKeywords, RunKeywords, SearchKeywords, check_keywords


def written(keywords):
    return {name: hint.__forward_arg__ for name, hint in keywords.__annotations__.items()}


def test_keywords_are_the_options():
    options = {f.name: f.type for one in (Fields, BuildOptions) for f in fields(one) if f.name != "model"}
    del options["declared"]  # follows from `metadata`
    given = written(BuildKeywords)
    for name in ("metadata", "include", "exclude"):  # a list will do, too
        assert given.pop(name) == "str | Sequence[str] | None"
        assert options.pop(name).endswith("Sequence[str] | None")
    assert given == options
    asked = {f.name: f.type for f in fields(SearchOptions) if f.name != "k"}
    given = written(SearchKeywords)
    assert given.pop("workflow") == "Workflow" and asked.pop("workflow") == "str"
    assert given == asked
    assert set(RunKeywords.__annotations__) == set(SearchKeywords.__annotations__) - {"explain"}


@pytest.mark.parametrize(
    ("call", "options"),
    [(cp.index, BuildOptions()), (OpenIndex.search, SearchOptions()), (OpenIndex.run, SearchOptions(k=1000))],
)
def test_signatures_name_the_settings_and_their_defaults(call, options):
    shown = inspect.signature(call).parameters
    assert not [name for name, one in shown.items() if one.kind is one.VAR_KEYWORD]
    shared = shown.keys() & vars(options).keys()
    assert len(shared) > 5
    assert {name: shown[name].default for name in shared} == {name: getattr(options, name) for name in shared}


def test_the_signature_is_one_that_a_notebook_binds():
    bound = inspect.signature(cp.index).bind(["a"], "i", model=None, codec="int8", title="head")
    assert bound.arguments["codec"] == "int8"
    with pytest.raises(TypeError):
        inspect.signature(cp.index).bind(["a"], "i", codek="int8")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cp.index.nothing


def test_a_wrong_name_is_answered_with_the_right_ones(tmp_path):
    with pytest.raises(
        ConfigError, match="unknown setting 'codek'; expected model, codec, .*; did you mean 'codec'"
    ):
        cp.index(["a"], tmp_path / "i", model=None, codek="int8")
    assert not (tmp_path / "i").exists()
    with cp.index(["a cat"], tmp_path / "i", model=None) as notes:
        with pytest.raises(
            ConfigError, match="unknown setting 'explane'; expected k, .*; did you mean 'explain'"
        ):
            notes.search("cat", explane=True)
        with pytest.raises(ConfigError, match="unknown setting 'explain'; expected k, workflow"):
            notes.run({"q": "cat"}, explain=True)
        with pytest.raises(ConfigError, match="did you mean 'weights'"):
            notes.evaluate(tmp_path, weight={"lexical": 1})
    with pytest.raises(ConfigError) as caught:
        check_keywords({"zzz": 1}, "alpha", "beta")
    assert str(caught.value) == "unknown setting 'zzz'; expected alpha, beta"


def test_search_options_are_written_as_plain_data():
    assert SearchOptions().to_dict() == {"k": 10, "workflow": "hybrid", "exhaustive": False, "explain": False}
    given = SearchOptions(
        where=cp.field("year") > 2020, feedback=(0.1, 5), weights={"mean": 1.0}, adapt=False
    )
    found = given.to_dict()
    assert (found["where"], found["feedback"], found["weights"], found["adapt"]) == (
        '"year" > 2020',
        "0.1,5",
        {"mean": 1.0},
        False,
    )
