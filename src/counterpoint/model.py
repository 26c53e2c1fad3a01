"""`Model`: encode texts into the vectors of an index, with default settings for search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from counterpoint.encode import DualEncoder, EncodeOptions, Gate, Head, Keyed, Mean, Tokens
from counterpoint.errors import ConfigError
from counterpoint.index import CodecName, IndexSettings, LexicalSettings, VectorSet
from counterpoint.index.analysis import AnalyzerName, check_analyzer
from counterpoint.part import Part
from counterpoint.search import LEXICAL, SearchSettings
from counterpoint.transform import Normalise, Transform
from counterpoint.types import Ragged, Side, Span
from counterpoint.vectors import Representation, Vectors

__all__ = ["Model"]

ROWS = 64
"""Rows per block of transforms, always the same."""


@final
class Model(Part):
    """An encoder, maps on its vector sets, and default settings for search.

    Args:
        encoder: encodes texts into vector sets.
        transforms: for each vector set, the maps applied to it in order, the same on both sides.
        search: default search settings of an index: `SearchSettings` as plain data.
        codec: default codec of an index.
        analyzer: default analyzer of BM25 in an index.

    Example:
        >>> model = load_model("minilm")
        >>> sorted(model.sets)
        ['mean', 'words']
    """

    provenance = frozenset({"search", "codec", "analyzer"})
    _left_out: Collection[str] = ()

    def __init__(
        self,
        encoder: DualEncoder,
        transforms: Mapping[str, Sequence[Transform]] | None = None,
        search: Mapping[str, Any] | None = None,
        codec: CodecName = "int8",
        analyzer: AnalyzerName = "english",
    ):
        super().__init__()
        self.encoder = encoder
        for name, chain in (transforms or {}).items():
            if isinstance(chain, Transform):
                raise ConfigError(
                    f"Model: transforms[{name!r}] is a {type(chain).__name__}; give a list of transforms"
                )
        self.transforms = nn.ModuleDict({k: nn.ModuleList(v) for k, v in (transforms or {}).items()})
        self.search = search
        self.codec: CodecName = codec
        self.analyzer: AnalyzerName = analyzer
        self._origin: tuple[str, object] | None = None
        check_analyzer(analyzer)

    def _allocate(self) -> None:
        unknown = [name for name in self.transforms if name not in self.encoder.sets]
        if unknown:
            raise ConfigError(
                f"Model: a transform on {unknown[0]!r}, but the encoder has {', '.join(self.encoder.sets)}"
            )

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The vector sets by name, after the transforms."""
        return self._sets

    @cached_property
    def _sets(self) -> dict[str, VectorSet]:
        self.setup()
        heads = cast(Mapping[str, Head], self.encoder.query.heads)
        return {
            name: VectorSet(
                self._mapped(name, torch.zeros(0, dim)).shape[1],
                heads[name].pooled,
                not heads[name].pooled,
                heads[name].static and name not in self.encoder.gates,
                self.encoder.special_ids(name),
            )
            for name, dim in self.encoder.sets.items()
        }

    @property
    def source(self) -> str | None:
        """The name that `load_model` loads it by; None if made in Python or changed since loading."""
        return None if self._origin is None or self._origin[1] != self._versions() else self._origin[0]

    @property
    def loaded_from(self) -> str | None:
        """The name it was loaded by, even if it was changed since; None if made in Python."""
        return None if self._origin is None else self._origin[0]

    def export_queries(self, folder: Path) -> dict[str, Any]:
        """Export the query encoder to a folder, to run without torch (see `counterpoint.onnx_export`).

        Returns:
            What was compared and the largest difference, or `why` there is no export.
        """
        from counterpoint.onnx_export import export_queries

        return export_queries(self, folder)

    def loader(self, scratch: Path, processes: int) -> Callable[[], Model]:
        """Return a function that loads this model in worker processes, which share the threads of this one.

        The model is saved to `scratch` if it has no source.
        """
        from counterpoint.loading import load_elsewhere

        source = self.source or str(scratch / "model")
        if self.source is None:
            self.save(Path(source))
        return partial(load_elsewhere, source, max(1, torch.get_num_threads() // processes))

    def came_from(self, source: str | None) -> Model:
        """Record the name it was loaded by, valid until the model changes; None to clear it."""
        self._origin = None if source is None else (source, self._versions())
        return self

    def _versions(self) -> object:
        """A value that changes with the model: torch counts writes to a tensor."""
        return self.to_dict(provenance=False), [tensor._version for tensor in self.state_dict().values()]

    def forward(self, tokens: Tokens) -> Representation:
        """Vector sets of a batch of texts of one side, for training; gradients pass the transforms."""
        return {name: self._map(name, vectors) for name, vectors in self.encoder(tokens).items()}

    def has_unit_length(self, name: str) -> bool:
        """Whether the last step of a set scales its vectors to length 1."""
        shared, heads = self.encoder.shared, self.encoder.query.heads
        last: Any = [heads[name], *([shared[name]] if name in shared else []), *self.steps(name)][-1]
        weighed = last is heads[name] and self._has_weights(name)
        return isinstance(last, Normalise) or (bool(getattr(last, "normalise", False)) and not weighed)

    def is_weighed(self, name: str) -> bool:
        """Whether a gate or router weights the rows of a set, and their lengths are these weights."""
        return self._has_weights(name) and not self.has_unit_length(name)

    def _has_weights(self, name: str) -> bool:
        return isinstance(self.encoder.query.heads[name], Keyed) or name in self.encoder.gates

    def steps(self, name: str) -> list[Transform]:
        """The maps on a set, in order, without those that are left out."""
        if name not in self.transforms:
            return []
        steps = [cast(Transform, step) for step in cast(nn.ModuleList, self.transforms[name])]
        return [step for step in steps if name not in self._left_out or isinstance(step, Normalise)]

    def append(self, name: str, step: Transform) -> Model:
        """Append a map to those of a set. This changes the model in place, with its fingerprint."""
        if name not in self.transforms:
            self.transforms[name] = nn.ModuleList()
        cast(nn.ModuleList, self.transforms[name]).append(step)
        self.__dict__.pop("_sets", None)
        return self

    def pop(self, name: str) -> Transform:
        """Remove the last map of a set. This changes the model in place, with its fingerprint."""
        steps = cast(nn.ModuleList, self.transforms[name])
        last = cast(Transform, steps[-1])
        del steps[-1]
        self.__dict__.pop("_sets", None)
        return last

    def leave_out(self, transforms: Collection[str] = (), tokenwise: Collection[str] = ()) -> None:
        """Skip maps that are not fitted yet: a recipe may train first and fit afterwards.

        Args:
            transforms: sets whose `transforms` are skipped; those of all other sets are active again. A
                `Normalise` has nothing to fit and stays, so that a set is ranked by cosine before and after.
            tokenwise: sets whose head's `tokenwise` maps are skipped.
        """
        self._left_out = frozenset(transforms)
        for encoder in (self.encoder.query, self.encoder.document):
            for name, head in encoder.heads.items() if encoder is not None else ():
                if isinstance(head, Mean):
                    head.waiting = name in tokenwise
        self.__dict__.pop("_sets", None)

    def encode_query(self, texts: Sequence[str], options: EncodeOptions | None = None) -> dict[str, Ragged]:
        """Vector sets of queries, by name, in the order of the texts."""
        return self._prepared().encoder.encode_query(texts, options, self._mapped)

    def encode_document(
        self, texts: Sequence[str], options: EncodeOptions | None = None
    ) -> dict[str, Ragged]:
        """Vector sets of documents, by name, in the order of the texts."""
        return self._prepared().encoder.encode_document(texts, options, self._mapped)

    @property
    def longest(self) -> int:
        """Maximum number of word-pieces read of a document, including special ones."""
        return self.encoder.encoder("document").longest("document")

    def encode_counted(
        self, texts: Sequence[str], progress: Callable[[int], object] | None = None
    ) -> tuple[dict[str, Ragged], int]:
        """Run `encode_document`; also return how many documents are longer than the model reads.

        The end of such a document is in no vector. `progress` is called with the number of texts done since
        its last call.
        """
        longer: list[int] = []
        options = EncodeOptions(progress=progress, on_longer=longer.append)
        return self.encode_document(texts, options), sum(longer)

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The span of text of each row of a set, including rows that a gate drops."""
        return self.encoder.spans(texts, name, side)

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """The ids of the rows of `spans`."""
        return self.encoder.row_ids(texts, name, side)

    def gate_weights(self, texts: Sequence[str], name: str, options: EncodeOptions | None = None) -> Ragged:
        """The gate's weight of each document row of `spans`, with the rows' ids.

        Raises:
            ConfigError: the set has no gate.
        """
        return self.encoder.gate_weights(texts, name, options)

    @torch.inference_mode()
    def table(self, name: str, side: Side = "document") -> Float[np.ndarray, "v d"]:
        """The vector of every vocabulary id in a static set, which is the row of each token of that id.

        Raises:
            ConfigError: the set is not static, as `sets[name]` says.
        """
        return self._mapped(name, self.encoder.table(name, side).float().cpu()).numpy()

    def prune(self, threshold: float) -> Model:
        """Prune document rows whose gate or router weight is at or below a threshold: a smaller index.

        No training is needed. ColBERTer, section 6.1, proposes it for models trained with a mild loss on the
        gate; CITADEL keeps weights above 0.9. Queries do not change. The model changes in place, with its
        fingerprint.

        Raises:
            ConfigError: the model has no gate and no router, or the threshold is negative.
        """
        heads = self.encoder.encoder("document").heads.values()
        routed = [head for head in heads if isinstance(head, Keyed)]
        if not self.encoder.gates and not routed:
            raise ConfigError("this model has no gate and no router, so there is nothing to prune")
        for weigher in (*cast(Sequence[Gate], self.encoder.gates.values()), *routed):
            weigher.threshold = Gate(threshold).threshold
        return self

    def index_settings(self, name: str | None = None, **changes: Any) -> IndexSettings:
        """Default settings of an index of this model.

        Args:
            name: name to load the model by later (see `IndexSettings`).
            changes: fields of `IndexSettings` to change.

        Raises:
            ConfigError: the model's `search` has unknown or invalid settings.
        """
        lexical = LexicalSettings(analyzer=self.analyzer)
        settings = IndexSettings(codec=self.codec, lexical=lexical, model=name)
        settings = replace(settings, **changes)
        if self.search is None or settings.search is not None:
            return settings
        SearchSettings.from_dict(self.search)  # report invalid settings before anything is built
        said = dict(self.search)
        if "weights" in said:
            said["weights"] = {
                part: w for part, w in said["weights"].items() if settings.lexical or part != LEXICAL
            }
        left_out = self.sets.keys() - set(self.sets if settings.sets is None else settings.sets)
        matching = {
            key: [name for name in said[key] if name not in left_out]
            for key in ("exact", "floor")
            if key in said
        }
        return replace(settings, search={**said, **matching})

    def _prepared(self) -> Model:
        if not self.is_set_up:
            with self.encoder.evaluation.lock:  # another thread may be setting it up
                self.setup()
        return self

    @torch.inference_mode()
    def _mapped(self, name: str, rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d2"]:
        """Apply a set's maps to its rows in blocks of one shape, so that other rows do not change the result.

        The last block is padded with ones, since flows skip zeros.
        """
        if not self.steps(name):
            return rows
        filled = functional.pad(rows, (0, 0, 0, -len(rows) % ROWS if len(rows) else ROWS), value=1.0)
        real = torch.ones(1, ROWS, dtype=torch.bool)
        mapped = [self._map(name, Vectors(block[None], real)).values[0] for block in filled.split(ROWS)]
        return torch.cat(mapped)[: len(rows)]

    def _map(self, name: str, vectors: Vectors) -> Vectors:
        for step in self.steps(name):
            vectors = step(vectors)
        return vectors
