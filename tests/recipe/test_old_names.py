"""Names of earlier versions that a user may have written still load, and mean what they meant."""

import pytest
from tests.recipe.small import declared

from counterpoint.config import Declared
from counterpoint.errors import ConfigError
from counterpoint.learn import CachedContrastive, Contrastive, NegativeCache, Train
from counterpoint.recipe import Recipe, change


def recipe():
    objective = Contrastive(negatives="positives") + 0.5 * CachedContrastive()
    return declared(stages=[Train(objective, cache=NegativeCache(on="mean", size=32, groups=8))])


def test_a_recipe_with_old_names_is_the_same_recipe():
    today = recipe().to_toml()
    before = today.replace('negatives = "positives"', 'candidates = "positives"')
    before = before.replace("groups = 8", "candidates = 8")
    assert before.count("candidates") == 2
    assert Recipe.from_toml(before).to_toml() == today
    assert Recipe.from_toml(before).fingerprint() == recipe().fingerprint()


def test_old_names_are_set_on_the_command_line():
    changed = change(recipe(), ["stages.0.cache.candidates=16"])
    assert changed.stages[0].cache.groups == 16


def test_recipes_in_python_take_old_names():
    assert NegativeCache(candidates=8, size=32) == NegativeCache(groups=8, size=32)
    assert Contrastive(candidates="positives").to_dict() == Contrastive(negatives="positives").to_dict()
    assert "groups" in NegativeCache.parameters_of() and "candidates" not in NegativeCache.parameters_of()
    with pytest.raises(ConfigError, match="'candidates' and 'negatives' are two names"):
        Contrastive(candidates="batch", negatives="batch")
    with pytest.raises(TypeError, match="unexpected keyword argument 'kandidates'"):
        NegativeCache(kandidates=3)


def test_an_old_name_next_to_the_new_one_is_refused():
    both = recipe().to_toml().replace("groups = 8", "groups = 8\ncandidates = 4")
    with pytest.raises(ConfigError, match="'candidates' and 'groups'"):
        Recipe.from_toml(both)


def every(cls):
    for below in cls.__subclasses__():
        yield below
        yield from every(below)


def test_every_new_name_exists_and_no_old_one_does():
    for cls in every(Declared):
        names = cls.parameters_of()
        for old, new in cls.renamed.items():
            assert new in names and old not in names, cls
