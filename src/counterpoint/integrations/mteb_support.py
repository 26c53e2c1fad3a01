"""Shared by both of mteb's protocols: the model and its description, the options, the texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.loading import load_model
from counterpoint.model import Model

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.models.model_meta import ModelMeta
    from mteb.types import CorpusDatasetType, PromptType, QueryDatasetType

__all__ = ["check_options", "check_text", "digest", "loaded", "meta", "progress", "read", "texts_of"]


def loaded(model: Model | str | Path, name: str | None) -> tuple[Model, str]:
    """Load the model, and find its name for mteb; errors come before a model is loaded.

    Raises:
        MissingExtraError: mteb is not installed.
        ConfigError: the name has no owner.
    """
    try:
        import mteb  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("measuring a model with mteb", package="mteb", extra="mteb") from error
    if name is None:
        name = f"counterpoint/{'model' if isinstance(model, Model) else Path(model).resolve().name}"
    if "/" not in name:
        raise ConfigError(f"mteb needs names such as 'owner/name', found {name!r}")
    return (model.setup() if isinstance(model, Model) else load_model(model)), name


def meta(model: Model, **facts: Any) -> ModelMeta:
    """Describe a model for mteb; unknown facts (licence, training data, …) stay None."""
    from mteb.models.model_meta import ModelMeta, ScoringFunction

    query, document = (model.encoder.encoder(side) for side in ("query", "document"))
    weights = list(model.parameters())
    longest = document.document and document.document.max_length
    return ModelMeta.create_empty(
        {
            **facts,
            "similarity_fn_name": ScoringFunction(facts["similarity_fn_name"]),
            "revision": model.fingerprint(),
            "n_parameters": sum(weight.numel() for weight in weights),
            "memory_usage_mb": sum(weight.nbytes for weight in weights) / 2**20,
            "max_tokens": longest or document.max_positions,
            "framework": ["PyTorch"],
            "use_instructions": any(
                text is not None and text.prompt for text in (query.query, document.document)
            ),
        }
    )


def check_options(options: Mapping[str, Any]) -> bool:
    """Whether to show progress; refuse any option of mteb that should change results.

    Raises:
        ConfigError: names every option that is neither `show_progress_bar` nor `batch_size`.
    """
    if unknown := options.keys() - {"batch_size", "show_progress_bar"}:
        raise ConfigError(
            f"encode_kwargs: {', '.join(sorted(unknown))} would have no effect on a Counterpoint model; "
            "leave it out"
        )
    return options.get("show_progress_bar", True)


def check_text(task: TaskMetadata, side: PromptType | None) -> None:
    """Refuse a task with images, sound or video on this side.

    mteb itself refuses it only if there is no text with them.

    Raises:
        ConfigError: names the task and its other kinds of input.
    """
    if others := [modality for modality in task.get_modalities(side) if modality != "text"]:
        raise ConfigError(
            f"{task.name}: {f'a {side.value}' if side else 'an input'} has {' and '.join(others)}, "
            "and this model reads text only; choose another task"
        )


def read(
    rows: CorpusDatasetType | QueryDatasetType, task: TaskMetadata, side: str, num_proc: int | None
) -> Iterator[str]:
    """Texts as mteb gives them to any encoder: title and body, or query and instruction, joined."""
    from mteb._create_dataloaders import create_dataloader
    from mteb.types import PromptType

    prompt_type = PromptType(side)
    check_text(task, prompt_type)
    return texts_of(create_dataloader(rows, task_metadata=task, prompt_type=prompt_type, num_proc=num_proc))


@contextmanager
def progress(label: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if wanted; yield a function that takes the number done."""
    with tqdm(total=total, desc=label, disable=not shown) as bar:

        def update(done: int) -> None:
            bar.update(done - bar.n)

        yield update


def texts_of(batches: Iterable[Any]) -> Iterator[str]:
    """The texts of mteb's batches, one by one."""
    return (text for batch in batches for text in batch["text"])


def digest(settings: Mapping[str, Any]) -> str:
    """A short name for settings, equal only for equal settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
