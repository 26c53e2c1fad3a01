"""mteb's two protocols for models: search with a whole index, and one pooled vector per text."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sized
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.index import Index, build_index
from counterpoint.integrations.mteb_support import (
    check_options,
    check_text,
    digest,
    loaded,
    meta,
    progress,
    read,
    texts_of,
)
from counterpoint.model import Model
from counterpoint.search import LEXICAL, WORKFLOWS, Run, Searcher, Workflow
from counterpoint.types import Document

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.types import Array, BatchedInput, CorpusDatasetType, PromptType, QueryDatasetType
    from torch.utils.data import DataLoader

__all__ = ["MtebEncoder", "MtebSearch"]

CHUNK = 1024  # number of texts encoded at a time; only one of the model's sets is kept
TYPES: Mapping[Workflow, str] = MappingProxyType(
    {
        "hybrid": "hybrid",
        "lexical": "sparse",
        "dense": "dense",
        "words": "late-interaction",
        "dense-words": "hybrid",
        "words-dense": "hybrid",
    }
)


@final
class MtebSearch:
    """A model as mteb's `SearchProtocol`: each corpus becomes an index, searched with a workflow.

    mteb's own code reads documents and queries, so titles and instructions are joined as for any other model.
    The index has the model's `index_settings`. `batch_size` is not used: batches are filled by length.

    Args:
        model: a model, or an argument of `load_model`.
        workflow: how to search.
        name: "owner/name" under which mteb stores the results; by default "counterpoint/" and the last part
            of `model`, or "counterpoint/model" for an object.
        folder: where to keep indexes, one per task, subset and split; an older one is replaced. By default
            indexes are temporary: removed at the next corpus, by `close`, and with this object.

    Raises:
        MissingExtraError: mteb is not installed.
        ConfigError: the workflow is unknown, or the name has no owner.

    Example:
        >>> model = MtebSearch("minilm", workflow="dense")
        >>> model.mteb_model_meta.name
        'counterpoint/minilm'
    """

    def __init__(
        self,
        model: Model | str | Path,
        workflow: Workflow = "hybrid",
        *,
        name: str | None = None,
        folder: str | Path | None = None,
    ):
        if workflow not in WORKFLOWS:
            raise ConfigError(f"unknown workflow {workflow!r}; choose one of {', '.join(WORKFLOWS)}")
        self.model, name = loaded(model, name)
        self.workflow: Workflow = workflow
        self.folder = None if folder is None else Path(folder)
        self.settings = self.model.index_settings()
        self.mteb_model_meta = meta(
            self.model,
            name=name,
            similarity_fn_name="custom",
            model_type=[TYPES[workflow]],
            # Scores depend on these, but the fingerprint does not; mteb stores results by them.
            experiment_kwargs={
                "workflow": workflow,
                "codec": self.settings.codec,
                "settings": digest(asdict(self.settings)),
            },
        )
        self._searcher: Searcher | None = None
        self._held = ExitStack()
        weakref.finalize(self, self._held.close)

    def index(
        self,
        corpus: CorpusDatasetType,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Mapping[str, Any],
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Index a corpus, replacing the previous one.

        Raises:
            ConfigError: documents that are not text, or an encoding option without effect here.
            DataError: two documents have the same id, or there are none.
        """
        shown = check_options(encode_kwargs)
        self.close()
        texts = read(corpus, task_metadata, "document", num_proc)
        documents = (Document(id_, text) for id_, text in zip(corpus["id"], texts, strict=True))
        model = None if self.workflow == LEXICAL else self.model
        with ExitStack() as stack:
            if self.folder is None:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="counterpoint-")))
            else:
                folder = self.folder / re.sub(r"[^\w.-]", "_", f"{task_metadata.name}-{hf_subset}-{hf_split}")
            with progress("indexing", len(corpus), shown) as update:
                build_index(documents, model, folder, self.settings, overwrite=True, on_progress=update)
            self._searcher = Searcher(stack.enter_context(Index(folder)), model)
            self._held.enter_context(stack.pop_all())

    def search(
        self,
        queries: QueryDatasetType,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        top_k: int,
        encode_kwargs: Mapping[str, Any],
        top_ranked: Mapping[str, list[str]] | None = None,
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """Scores of the best `top_k` documents of every query, best first.

        With `top_ranked`, only the documents listed there are scored. A query without results, or not listed,
        has no documents; mteb counts it as 0.

        Raises:
            NotFittedError: nothing was indexed.
            ConfigError: queries that are not text, or an encoding option without effect here.
            DataError: a document in `top_ranked` is not in the corpus.
        """
        shown = check_options(encode_kwargs)
        if self._searcher is None:
            raise NotFittedError("MtebSearch: search() was called before index(); index a corpus first")
        texts = dict(zip(queries["id"], read(queries, task_metadata, "query", num_proc), strict=True))
        listed = None
        if top_ranked is not None:
            listed = Run({query: dict.fromkeys(top_ranked.get(query, ()), 0.0) for query in texts})
        with progress("searching", len(texts), shown) as update:
            run = self._searcher.run(
                texts, top_k, workflow=self.workflow, candidates=listed, on_progress=update
            )
        return {query: run.scores(query) for query in run}

    def close(self) -> None:
        """Close the index, and remove it if it is temporary."""
        self._searcher = None
        self._held.close()


@final
class MtebEncoder:
    """One pooled set of a model as mteb's `EncoderProtocol`.

    Tasks without queries and documents (similarity, classification, clustering) encode texts as documents.
    `batch_size` is not used: batches are filled by length.

    Args:
        model: a model, or an argument of `load_model`.
        on: the vector set; optional if only one is pooled.
        name: as for `MtebSearch`.

    Raises:
        MissingExtraError: mteb is not installed.
        ConfigError: there is no such pooled set, several to choose from, or the name has no owner.

    Example:
        >>> model = MtebEncoder("minilm")
        >>> model.on, model.mteb_model_meta.embed_dim
        ('mean', 384)
    """

    def __init__(self, model: Model | str | Path, on: str | None = None, *, name: str | None = None):
        self.model, name = loaded(model, name)
        self.on = _pooled_set(self.model, on)
        self.normalise = self.model.has_unit_length(self.on)
        self.mteb_model_meta = meta(
            self.model,
            name=name,
            similarity_fn_name="cosine" if self.normalise else "dot",
            embed_dim=self.model.sets[self.on].dim,
            model_type=["dense"],
            experiment_kwargs={"set": self.on},  # a model may be measured with each of its sets
        )

    def encode(
        self,
        inputs: DataLoader[BatchedInput],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        prompt_type: PromptType | None = None,
        **kwargs: Any,
    ) -> Float[np.ndarray, "n d"]:
        """Vectors of texts, in their order; encoded as queries if `prompt_type` says so, else as documents.

        Raises:
            ConfigError: inputs that are not text, or an encoding option without effect here.
        """
        shown = check_options(kwargs)
        check_text(task_metadata, prompt_type)
        encode = self.model.encode_query if prompt_type == "query" else self.model.encode_document
        made = [np.zeros((0, self.model.sets[self.on].dim), np.float32)]
        texts = texts_of(inputs)
        with progress("encoding", len(cast(Sized, inputs.dataset)), shown) as update:
            while chunk := list(islice(texts, CHUNK)):
                made.append(encode(chunk)[self.on].values)
                update(sum(map(len, made)))
        return np.concatenate(made)

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Float[Tensor, "a b"]:
        """Similarity of all pairs, as in `Dot`: cosine for vectors of unit length, else the dot product."""
        return self._rows(embeddings1) @ self._rows(embeddings2).T

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Float[Tensor, " a"]:
        """Similarity of the first with the first, the second with the second, and so on."""
        return (self._rows(embeddings1) * self._rows(embeddings2)).sum(-1)

    def _rows(self, embeddings: Array) -> Float[Tensor, "n d"]:
        rows = torch.atleast_2d(torch.as_tensor(embeddings).float())
        return normalize(rows, dim=-1) if self.normalise else rows


def _pooled_set(model: Model, on: str | None) -> str:
    pooled = [name for name, vectors in model.sets.items() if vectors.pooled]
    if on is None and len(pooled) == 1:
        return pooled[0]
    if on in pooled:
        return on
    wanted = "on=None" if on is None else f"on={on!r}"
    raise ConfigError(
        f"MtebEncoder: {wanted}, but the pooled sets of this model are {', '.join(pooled) or 'none'} "
        f"(of {', '.join(model.sets)}); name one, or use MtebSearch, which uses every set"
    )
