"""Equal combinations are one cell, impossible ones are named, and a key follows what decides the result."""

import pytest
from tests.sweep.fake import QUERIES, TEXTS, CountingModel, loader, write_collection, write_grid

from counterpoint.index import LexicalSettings, VectorSet
from counterpoint.sweep import plan_sweep, read_grid


def planned(path, **models):
    return plan_sweep(read_grid(path), loader(**{"one": CountingModel(), **models}))


def names(plan):
    return [" ".join(cell.configuration(plan.grid.settings).values()) for cell in plan.cells]


def test_each_cell_once(grid):
    plan = planned(grid)
    # 2 models × 4 workflows × 2 codecs × 2 fusions are 32 combinations. BM25 alone is what `lexical` comes to
    # for both models, and all that `none` can be. An int4 index keeps pooled vectors in int8.
    assert names(plan) == [
        "one hybrid int4 ceiling",
        "one hybrid int4 rrf",
        "one hybrid float32 ceiling",
        "one hybrid float32 rrf",
        "BM25 lexical – –",
        "one dense int4 –",
        "one dense float32 –",
        "one words int4 –",
        "one words float32 –",
    ]
    assert [tuple(entry[:2]) for entry in plan.not_applicable] == [("none", "dense"), ("none", "words")]
    assert all("this index has no such part; it has lexical" in entry.reason for entry in plan.not_applicable)
    counted = [len(cell.combinations) for cell in plan.cells]
    assert counted == [1, 1, 1, 1, 4 + 8, 2, 2, 2, 2]
    assert sum(counted) + 2 * 4 == 32  # what is left out and what is evaluated is all there is


def test_an_index_is_shared_by_what_reads_it(grid):
    plan = planned(grid)
    by_index = {}
    for cell, name in zip(plan.cells, names(plan), strict=True):
        by_index.setdefault(cell.index_key, []).append(name.split()[:3])
    assert sorted(map(len, by_index.values())) == [1, 4, 4]


def test_equal_storage_is_one_cell(grid):
    plan = planned(write_grid(grid, grid.read_text().replace('"float32"', '"int8"')))
    dense = [name for name in names(plan) if "dense" in name]
    assert dense == ["one dense – –"]  # int4 and int8 keep pooled vectors alike


def test_weights_that_are_proportional_or_name_nothing(grid):
    text = grid.read_text().replace(
        'fusion = ["ceiling", "rrf"]', 'weights = ["lexical=1 mean=1", "mean=2 lexical=2"]'
    )
    plan = planned(write_grid(grid, text))
    hybrid = [name for name in names(plan) if "hybrid" in name]
    assert hybrid == ["one hybrid int4 –", "one hybrid float32 –"]
    plan = planned(write_grid(grid, text.replace("mean=2", "tokens=2")))
    reasons = [entry.reason for entry in plan.not_applicable if entry.model == "one"]
    assert reasons == ["weights: unknown part 'tokens'; expected lexical, mean, words"]
    assert any(name == "one dense int4 –" for name in names(plan))  # which puts nothing together


def test_feedback_makes_cells_of_hybrids_with_a_pooled_set_only(grid):
    text = grid.read_text().replace('["ceiling", "rrf"]', '["rrf"]')
    before = planned(write_grid(grid, text))
    plan = planned(write_grid(grid, text + 'feedback = ["0", "0.1", "0.1,5", "0.1,2"]\n'))
    hybrid = [cell for cell, name in zip(plan.cells, names(plan), strict=True) if "hybrid" in name]
    fed = [(cell.search.feedback, cell.search.feedback_documents) for cell in hybrid]
    assert fed == [(0.0, 5), (0.1, 5), (0.1, 2)] * 2  # of "0.1" and "0.1,5", which are the same, one
    assert len(plan.cells) == len(before.cells) + 4
    assert {cell.key for cell in before.cells} < {cell.key for cell in plan.cells}
    assert len({cell.key for cell in plan.cells}) == len(plan.cells)
    assert len({cell.index_key for cell in hybrid}) == 2


def test_a_model_without_words(grid):
    class Pooled(CountingModel):
        sets = {"mean": VectorSet(16, True, False)}

    plan = planned(grid, one=Pooled())
    assert ("one", "words") in [entry[:2] for entry in plan.not_applicable]
    assert not any("words" in name for name in names(plan))


class Proposing(CountingModel):
    """Also proposes a BM25 that does not stem."""

    def index_settings(self, name=None, **changes):
        return super().index_settings(name, **{"lexical": LexicalSettings(analyzer="simple"), **changes})


def test_bm25_is_as_the_model_proposes_unless_given_and_alone_as_everywhere(grid):
    def lexical(text):
        cells = planned(write_grid(grid, text), one=Proposing()).cells
        return {cell.workflow: cell.index.lexical for cell in cells}

    text = grid.read_text()
    proposed = LexicalSettings(analyzer="simple")
    assert lexical(text) == {
        "lexical": LexicalSettings(),
        **dict.fromkeys(("hybrid", "dense", "words"), proposed),
    }
    assert lexical(text.replace("[index]", "[index]\nk1 = 1.5")) == {
        "lexical": LexicalSettings(k1=1.5),
        **dict.fromkeys(("hybrid", "dense", "words"), LexicalSettings(k1=1.5, analyzer="simple")),
    }
    given = lexical(text.replace("[index]", '[index]\nanalyzer = "none"'))
    assert set(given.values()) == {LexicalSettings(analyzer="none")}


def in_grid(old, new):
    return lambda grid, folder: write_grid(grid, grid.read_text().replace(old, new))


def in_collection(**changed):
    return lambda grid, folder: write_collection(folder, **changed)


CHANGES = {
    "the model": lambda grid, folder: {"one": CountingModel(seed=1)},
    "a document": in_collection(texts={**TEXTS, "empty": "no longer"}),
    "a query": in_collection(queries={**QUERIES, "q1": "another"}),
    "a judgement": in_collection(qrels={"q1": {"fox": 1}}),
    "the depth": in_grid("k = 5", "k = 6"),
    "an analyzer": in_grid("[index]", '[index]\nanalyzer = "simple"'),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_decides_a_result_decides_its_key(grid, animals, what):
    before = {name: cell.key for name, cell in zip(names(planned(grid)), planned(grid).cells, strict=True)}
    changed = CHANGES[what](grid, animals)
    plan = planned(grid, **(changed if isinstance(changed, dict) else {}))
    after = {name: cell.key for name, cell in zip(names(plan), plan.cells, strict=True)}
    same = {name.split()[1] for name in before if after[name] == before[name]}
    assert same == {"the model": {"lexical"}, "an analyzer": {"dense", "words"}}.get(what, set())


def test_where_a_collection_lies_decides_nothing(grid, tmp_path, animals):
    before = [cell.key for cell in planned(grid).cells]
    animals.rename(tmp_path / "elsewhere")
    write_grid(grid, grid.read_text().replace('"animals"', '"elsewhere"\nname = "animals"'))
    assert [cell.key for cell in planned(grid).cells] == before


def test_what_cannot_be_loaded_leaves_the_rest(grid, animals):
    text = grid.read_text().replace('"none"]', '"absent", "none"]')
    plan = planned(write_grid(grid, text))
    assert [tuple(failure) for failure in plan.failures] == [("model absent", "there is no model 'absent'")]
    assert len(plan.cells) == 9
    (animals / "corpus.jsonl").write_text("{broken\n")
    plan = planned(grid)
    assert plan.cells == () and plan.failures[0].where == "collection animals"
    assert "corpus.jsonl:1" in plan.failures[0].message


def test_a_pool_factor_changes_only_what_is_pooled(grid):
    text = grid.read_text().replace('codec = ["int4", "float32"]', "pool_factor = [1, 1.5]")
    plan = planned(write_grid(grid, text))
    assert [name for name in names(plan) if "words" in name] == ["one words 1 –", "one words 1.5 –"]
    assert [name for name in names(plan) if "dense" in name] == ["one dense – –"]
    assert {cell.index.pool_factor for cell in plan.cells if cell.workflow == "words"} == {1, 1.5}
