"""`Recipe`: a model, how it is trained and how it is searched, as one value that TOML can hold."""

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
from counterpoint.learn import Stage
from counterpoint.model import Model
from counterpoint.score import Scorer
from counterpoint.typed import faults_of

__all__ = ["DataSettings", "Recipe", "declared_in", "differences", "recipe_from"]

FORMAT = 1


@final
@dataclass(frozen=True)
class DataSettings(Setting):
    """Which part of a collection is trained on, and which is looked at meanwhile.

    Attributes:
        train: the split that holds the examples.
        development: the split that the model is evaluated on while it is trained; None for no such split.
        held_out: how many training queries are held out for that where the collection has no such split (or
            `development` is None); 0 for none.
        relevant_from: the lowest grade of a collection's judgements that makes a document a positive. Grades
            from 1 up to it are neither positives nor negatives.
        depth: how many of BM25's documents a cross-encoder reranks for each development query; a model that
            makes vectors searches all documents.
    """

    train: str = "train"
    development: str | None = "dev"
    held_out: int = 100
    relevant_from: int = 1
    depth: int = 100

    def __post_init__(self) -> None:
        faults = [
            f"data: {name} must be at least {least}, found {getattr(self, name)}"
            for name, least in {"held_out": 0, "depth": 1}.items()
            if getattr(self, name) < least
        ]
        if self.relevant_from < 1:
            faults.append(f"data: relevant_from is a grade from 1 up, found {self.relevant_from}")
        if faults:
            raise ConfigError(*faults)


@final
@dataclass(frozen=True)
class Recipe(Setting):
    """A training run, declared; nothing is loaded by declaring it.

    Attributes:
        name: short, as on the command line.
        paper: what it follows: authors, year, title.
        model: what is trained, declared and not set up.
        stages: carried out in order; their names differ.
        about: one line for people.
        scorer: of every stage that has none of its own. Its learnt weights go from stage to stage. A
            cross-encoder is its own.
        search: how the trained model is searched: fields of `SearchSettings`; the model's own where None.
        measures: evaluated on the development set; the first one decides which model is best.
        seed: decides every random draw.
        data: which splits are used.
        start: the folder of a run or a saved model; every weight of its model that has the name and shape of
            one of this model's is taken before the first stage.
        start_names: what names of weights there begin with, and what to put in place of it, where the parts
            have other names: `{"query.heads.tokens.": "query.heads.words."}`.

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
        """Plain data that names every setting, those left at their defaults, too."""
        return self.to_dict(defaults=True)

    def fingerprint(self) -> str:
        """SHA-256 over all settings: equal exactly for recipes that say the same."""
        return hashlib.sha256(json.dumps(self.resolved(), sort_keys=True).encode()).hexdigest()

    def copy(self) -> Recipe:
        """The same recipe with parts of its own: training a copy leaves the original as declared.

        Raises:
            ConfigError: a class of it has been defined anew since.
        """
        return recipe_from(self.to_dict(), self.name, like=self)

    def declared_model(self) -> Model | InteractiveEncoder:
        """The model with the recipe's search settings, its parts shared with the recipe."""
        if isinstance(self.model, InteractiveEncoder):
            return self.model
        if isinstance(self.model, DualEncoder):
            return Model(self.model, search=self.search)
        if self.search is None:
            return self.model
        arguments = {name: getattr(self.model, name) for name in Model.parameters_of()}
        return Model(**{**arguments, "search": self.search})

    def to_toml(self) -> str:
        """TOML that names every setting; `from_toml` gives back an equal recipe."""
        document = {"format": FORMAT, "fingerprint": self.fingerprint(), "recipe": self.resolved()}
        return tomli_w.dumps(document)

    @staticmethod
    def from_toml(text: str, where: str = "recipe.toml") -> Recipe:
        """The inverse of `to_toml`; settings that are left out have their defaults.

        Args:
            text: what to read.
            where: its name in messages.

        Raises:
            ArtifactError: not a recipe in a format that this version reads.
            ConfigError: listing every setting that is unknown, missing or of another type.
        """
        try:
            document = parse_toml(text)
        except ValueError as error:
            raise ArtifactError(f"not valid TOML: {error}", path=where) from error
        if document.get("format") != FORMAT:
            raise ArtifactError(
                f"a recipe needs format = {FORMAT}, found {document.get('format')!r}; if a newer version "
                "wrote it, upgrade counterpoint",
                path=where,
            )
        return recipe_from(document.get("recipe"), where)


def recipe_from(data: object, where: str, like: Recipe | None = None) -> Recipe:
    """A recipe from plain data, every value checked against the signatures before anything is made.

    Args:
        data: as `Recipe.to_dict` gives them.
        where: their name in messages.
        like: the recipe that they were made of, if so; a class that goes by the name of one of its classes
            and is another is refused.

    Raises:
        ConfigError: listing every fault.
        ArtifactError: the data name a class that is not known here.
    """
    faults = list(faults_of(data, Recipe, "recipe"))
    if faults:
        raise ConfigError(*[f"{where}: {fault}" for fault in faults])
    try:
        made = Recipe.from_dict(data)  # pyright: ignore[reportArgumentType]
    except ConfigError as error:
        raise ConfigError(*[f"{where}: {fault}" for fault in error.faults]) from error
    before = {name_of(type(part)): type(part) for _, part in (() if like is None else declared_in(like))}
    for path, found in declared_in(made):
        if before.get(name_of(type(found)), type(found)) is not type(found):
            raise ConfigError(
                f"{where}: {path}: {name_of(type(found))} has been defined anew, by the same file or another "
                "of its name; load the recipe again"
            )
    return made


def declared_in(value: Any, path: str = "") -> Iterator[tuple[str, Declared]]:
    """Everything declared below a value, and itself, with its path."""
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


def differences(one: object, other: object, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where plain data differ: the path, and the value on each side (None where there is none)."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and isinstance(other, list):
        for at, (left, right) in enumerate(zip_longest(one, other)):
            yield from differences(left, right, f"{path}.{at}")
    elif one != other:
        yield path, one, other
