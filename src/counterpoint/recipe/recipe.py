"""`Recipe`: a model, its training and its search settings, as one value that TOML can store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, final

import tomli_w

from counterpoint.config import Declared, Setting, name_of
from counterpoint.encode import DualEncoder, InteractiveEncoder
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.foreign import parse_toml
from counterpoint.headers import Header
from counterpoint.learn import Stage, Teacher, Train
from counterpoint.learn.limits import too_low
from counterpoint.model import Model
from counterpoint.score import Scorer
from counterpoint.typed import faults_of

__all__ = [
    "DataSettings",
    "Recipe",
    "declared_in",
    "differences",
    "outside_teachers",
    "recipe_from",
    "training",
]

FORMAT = 1
HEADER = Header("recipe", (FORMAT,), f"write format = {FORMAT}")


@final
@dataclass(frozen=True)
class DataSettings(Setting):
    """Which part of a collection to train on, and which to evaluate on during training.

    Attributes:
        train: the split with the examples.
        development: the split to evaluate on during training. None for no such split.
        held_out: number of training queries to hold out for evaluation if the collection has no development
            split (or `development` is None). 0 for none.
        relevant_from: lowest grade of a positive in the collection's judgements. Grades from 1 up to it are
            neither positives nor negatives.
        depth: number of BM25 documents that a cross-encoder reranks per development query. A model that makes
            vectors searches all documents.
    """

    train: str = "train"
    development: str | None = "dev"
    held_out: int = 100
    relevant_from: int = 1
    depth: int = 100

    def __post_init__(self) -> None:
        faults = too_low(self, "data", held_out=0, depth=1)
        if self.relevant_from < 1:
            faults.append(f"data: relevant_from is a grade from 1 up, found {self.relevant_from}")
        if faults:
            raise ConfigError(*faults)


@final
@dataclass(frozen=True)
class Recipe(Setting):
    """A declared training run. Declaring it loads nothing.

    Attributes:
        name: short, as on the command line.
        paper: the paper that it follows: authors, year, title.
        model: the model to train, declared and not set up.
        stages: executed in order. Their names must differ.
        about: one line for people.
        scorer: for stages without their own. Its learnt weights pass from stage to stage. A cross-encoder
            needs none.
        search: how to search with the trained model: fields of `SearchSettings`. None for the model's own.
        measures: evaluated on the development set. The first one decides which model is best.
        seed: seed of all random draws.
        data: which splits to use.
        start: folder of a run or a saved model. Every weight whose name and shape fit this model is copied
            from there before the first stage.
        start_names: for parts with different names: prefixes of weight names in `start`, mapped to their
            prefixes here, such as `{"query.heads.tokens.": "query.heads.words."}`.

    Example:
        >>> from counterpoint.recipe import load_recipe
        >>> load_recipe("colbert-paper").stages[0].lr
        3e-06
    """

    name: str
    paper: str
    model: Model | DualEncoder | InteractiveEncoder
    stages: Sequence[Stage]
    about: str = ""
    scorer: Scorer | None = None
    search: Mapping[str, Any] | None = None
    measures: tuple[str, ...] = ("nDCG@10", "R@100")
    seed: int = 1
    data: DataSettings = DataSettings()
    start: str | None = None
    start_names: Mapping[str, str] = field(default_factory=dict)

    def resolved(self) -> dict[str, Any]:
        """Plain data with every setting, including those at their defaults."""
        return self.to_dict(defaults=True)

    def fingerprint(self) -> str:
        """SHA-256 of all settings, equal for equal recipes."""
        return hashlib.sha256(json.dumps(self.resolved(), sort_keys=True).encode()).hexdigest()

    def copy(self) -> Recipe:
        """Copy the recipe with its parts, so that training the copy does not change the original.

        Raises:
            ConfigError: one of its classes has been redefined since.
        """
        return recipe_from(self.to_dict(), self.name, like=self)

    def declared_model(self) -> Model | InteractiveEncoder:
        """The model with the recipe's search settings. Its parts are shared with the recipe."""
        if isinstance(self.model, InteractiveEncoder):
            return self.model
        if isinstance(self.model, DualEncoder):
            return Model(self.model, search=self.search)
        if self.search is None:
            return self.model
        arguments = {name: getattr(self.model, name) for name in Model.parameters_of()}
        return Model(**{**arguments, "search": self.search})

    def to_toml(self) -> str:
        """TOML with every setting. `from_toml` gives back an equal recipe."""
        document = {"format": FORMAT, "fingerprint": self.fingerprint(), "recipe": self.resolved()}
        return tomli_w.dumps(document)

    @staticmethod
    def from_toml(text: str, where: str = "recipe.toml") -> Recipe:
        """Read TOML as `to_toml` writes it, named `where` in messages. Omitted settings have their defaults.

        Raises:
            ArtifactError: not a recipe in a format that this version reads.
            ConfigError: listing every setting that is unknown, missing or of a wrong type.
        """
        try:
            document = parse_toml(text)
        except ValueError as error:
            raise ArtifactError(f"not valid TOML: {error}", path=where) from error
        HEADER.check(document, where)
        return recipe_from(document.get("recipe"), where)


def recipe_from(data: object, where: str, like: Recipe | None = None) -> Recipe:
    """Make a recipe from plain data. All values are checked against the signatures first.

    `where` names the data in messages. If they come from the recipe `like`, a class with the name of one of
    its classes must be the same class.

    Raises:
        ConfigError: listing every fault.
        ArtifactError: the data name an unknown class.
    """
    if faults := list(faults_of(data, Recipe, "recipe")):
        raise ConfigError(*[f"{where}: {fault}" for fault in faults])
    try:
        made = Recipe.from_dict(data)  # pyright: ignore[reportArgumentType]
    except ConfigError as error:
        raise ConfigError(*[f"{where}: {fault}" for fault in error.faults]) from error
    before = {name_of(type(part)): type(part) for _, part in (() if like is None else declared_in(like))}
    for path, found in declared_in(made):
        if before.get(name_of(type(found)), type(found)) is not type(found):
            raise ConfigError(
                f"{where}: {path}: {name_of(type(found))} has been redefined, by the same file or another of "
                "the same name; load the recipe again"
            )
    return made


def declared_in(value: Any, path: str = "") -> Iterator[tuple[str, Declared]]:
    """Yield everything declared inside a value, and the value itself, with its path."""
    if isinstance(value, Declared):
        yield path, value
        inside = [(name, getattr(value, name)) for name in value.parameters_of()]
    elif hasattr(value, "items"):
        inside = list(value.items())
    elif isinstance(value, Iterable) and not isinstance(value, str):
        inside = list(enumerate(value))
    else:
        return
    for name, item in inside:
        yield from declared_in(item, f"{path}.{name}" if path else str(name))


def training(recipe: Recipe) -> list[Train]:
    """The training stages."""
    return [stage for stage in recipe.stages if isinstance(stage, Train)]


def outside_teachers(value: Any, where: str) -> Iterator[tuple[str, Declared]]:
    """Yield everything declared inside a value with its path, except what is inside a teacher.

    A teacher's scorer refers to the teacher's vector sets, not to those of the model in training.
    """
    taught: list[str] = []
    for path, part in declared_in(value, where):
        if isinstance(part, Teacher):
            taught.append(f"{path}.")
        elif not path.startswith(tuple(taught)):
            yield path, part


def differences(one: object, other: object, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where plain data differ: the path, and the value on each side (None if it is missing)."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and isinstance(other, list):
        for at, (left, right) in enumerate(zip_longest(one, other)):
            yield from differences(left, right, f"{path}.{at}")
    elif one != other:
        yield path, one, other
