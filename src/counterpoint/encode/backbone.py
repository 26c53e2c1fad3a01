"""`Transformer`: any BERT-like model as a part that carries its own configuration and tokenizer."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from counterpoint.dry_run import dry_run
from counterpoint.encode.bert import Bert, bert_settings
from counterpoint.encode.saved import backbone_in, backbone_weights, saved_model
from counterpoint.encode.sources import MINILM, check_weights, is_minilm_tokenizer, locate
from counterpoint.encode.state_memory import StateMemory
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.encode.tokens import Kind, Tokens
from counterpoint.encode.weights import Layers, lexical_head, read_json, read_weights, rename_weights
from counterpoint.errors import ArtifactError, ConfigError, CounterpointError, NotFittedError
from counterpoint.part import WEIGHTS, Part, check_files
from counterpoint.types import Side

__all__ = ["Transformer"]

# Configuration entries that change no result.
_IDLE = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "use_cache")
_LAYERS = ("num_hidden_layers", "n_layers", "num_layers", "n_layer")
MOST = 100_000  # upper limit of counts that transformers loops over when it reads a configuration


@final
class Transformer(Part):
    """The hidden states of a model that `transformers.AutoModel` supports, in float32.

    A saved backbone holds its configuration, tokenizer and weights, and no longer needs its source. Code from
    a checkpoint is never run, and pickles are never read.

    Args:
        source: "minilm" (the embedded all-MiniLM-L6-v2), a folder, or a hub id. From the folder of a
            Counterpoint model or run, the trained backbone is read.
        revision: for a hub id, the commit, tag or branch.
        layers: an int keeps the first so many layers; a list keeps these layers, counted from 0 (`[0, 5]`).
            0 keeps the embeddings alone (no self-attention).
        sha256: refuse a weights file with another checksum.
        random: keep the configuration and the tokenizer, but draw new weights (ablation of pre-training).
        side: which backbone to read from a Counterpoint model that has one encoder per side.

    Example:
        >>> backbone = Transformer("minilm", layers=2).setup()
        >>> backbone.dim, backbone.max_positions
        (384, 512)
    """

    provenance = frozenset({"source", "revision", "layers", "sha256", "random", "side"})
    config_: dict[str, Any] | None = None
    tokenizer_: Tokenizer | None = None
    memory: StateMemory | None = None
    """While set, known texts are not computed again. Use it only for weights that do not change."""
    lexical_: Mapping[str, Tensor] | None = None
    """Masked-language-model head of the checkpoint, from which a `Router` can start. Empty if it has none;
    None if no checkpoint was read."""

    def __init__(
        self,
        source: str = "minilm",
        revision: str | None = None,
        layers: int | Sequence[int] | None = None,
        sha256: str | None = None,
        random: bool = False,
        side: Side = "query",
    ):
        super().__init__()
        self.source = source
        self.revision = revision
        self.layers = layers
        self.sha256 = sha256
        self.random = random
        self.side: Side = side

    def forward(self, tokens: Tokens) -> Float[Tensor, "b t h"]:
        """Compute the hidden states of the last layer."""
        if self.memory is None:
            return self._states(tokens.ids, tokens.attention)
        lengths = (tokens.kinds != Kind.PADDING).sum(1)
        return self.memory.states(self._states, tokens.ids, tokens.attention, lengths)

    def _states(self, ids: Int[Tensor, "b t"], attention: Bool[Tensor, "b t"]) -> Float[Tensor, "b t h"]:
        return self.model_(input_ids=ids, attention_mask=attention.long()).last_hidden_state

    def hidden_states(self, tokens: Tokens) -> list[Float[Tensor, "b t h"]]:
        """Compute the input of the first layer (embeddings with positions) and the output of every layer."""
        attention = tokens.attention.long()
        made = self.model_(input_ids=tokens.ids, attention_mask=attention, output_hidden_states=True)
        return list(made.hidden_states or [made.last_hidden_state])  # no layers: the input is the output

    def embed(self, tokens: Tokens) -> Float[Tensor, "b t e"]:
        """Look up word embeddings alone: no position, segment, layer norm or context."""
        return self.embeddings(tokens.ids)

    @property
    def embeddings(self) -> nn.Embedding:
        """The word-embedding table, (vocabulary, components)."""
        return self._built.get_input_embeddings()

    def cut(self, layers: int | Sequence[int]) -> Transformer:
        """Copy this backbone with fewer layers; if this one is set up, the copy gets its weights.

        `layers` is the number of first layers, or a list of layers counted from 0.

        Raises:
            ConfigError: the backbone has fewer layers, or the list is not in rising order.
        """
        made = Transformer(self.source, self.revision, layers, self.sha256, self.random, self.side)
        if self.is_set_up and self.config_ is not None:
            made.config_, made.tokenizer_ = _cut(self.config_, layers), self.tokenizer_
            made.model_ = _build(made.config_, Path(self.source))
            own, wanted = self.model_.state_dict(), made.model_.state_dict()
            made.model_.load_state_dict(rename_weights(own, wanted, prefix="", layers=layers))
            made.is_set_up = True
        return made

    @property
    def dim(self) -> int:
        """Number of components of a hidden state."""
        return self._built.config.hidden_size

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that belongs to the weights."""
        if self.tokenizer_ is None:
            raise NotFittedError("this backbone has no tokenizer yet; call setup() first")
        return self.tokenizer_

    def tokenizer_at_hand(self) -> Tokenizer | None:
        """The tokenizer, read from the source without loading anything else; None if the source is a hub id.

        Raises:
            ArtifactError: it cannot be read.
            MissingExtraError: the embedded model is not installed.
        """
        if self.tokenizer_ is not None:
            return self.tokenizer_
        place = self._at_hand()
        return None if place is None else _read_tokenizer(*place[:2])

    def dim_at_hand(self) -> int | None:
        """`dim`, read from the source's configuration; None if the source is a hub id or does not say it.

        Raises:
            ArtifactError: it cannot be read.
            MissingExtraError: the embedded model is not installed.
        """
        config, place = self.config_, self._at_hand() if self.config_ is None else None
        if place is not None:
            config = _read_config(place[0], None)
        dim = (config or {}).get("hidden_size")
        return dim if isinstance(dim, int) else None

    def _at_hand(self) -> tuple[Path, Path | None, str | None] | None:
        """Where the source's files are; None if it is a hub id."""
        known = self.source == MINILM or Path(self.source).expanduser().is_dir()
        return _place(locate(self.source), self.side) if known else None

    @property
    def max_positions(self) -> int:
        """The longest sequence that has positions; a large number if positions are relative."""
        table = next((m for n, m in self.model_.named_modules() if n.endswith("position_embeddings")), None)
        if isinstance(table, nn.Embedding):  # RoBERTa and related models count positions from padding_idx + 1
            return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        return getattr(self._built.config, "max_position_embeddings", None) or 1_000_000

    def setup_from(
        self, folder: Path, *, unused: Collection[str] = (), weights: Mapping[str, Tensor] | None = None
    ) -> Transformer:
        """Set up from a local folder, as readers of composite checkpoints do.

        Args:
            folder: with `config.json`, the tokenizer and `model.safetensors`.
            unused: weights of that file that belong to another part.
            weights: used instead of that file's weights.
        """
        place, ours, name = _place(folder, self.side)
        if ours is not None:
            check_files(ours)
        if self.sha256 is not None:
            check_weights(folder / "model.safetensors" if ours is None else ours / WEIGHTS, self.sha256)
        self.config_ = _read_config(place, self.layers)
        self.tokenizer_ = _read_tokenizer(place, ours)
        self.lexical_, renamed = {}, {}
        if not self.random:
            if weights is None:
                weights = read_weights(folder) if ours is None else backbone_weights(ours, str(name))
            self.lexical_ = lexical_head(weights, self.config_)
            with dry_run(len(weights)):  # allocate nothing yet: the settings may not fit the file
                self.model_ = _build(self.config_, place)
            renamed = self._renamed({key: t for key, t in weights.items() if key not in unused})
            self._check_shapes(renamed, place)
        self.model_ = _build(self.config_, place)
        if not self.random:
            self._load_strictly(renamed, place)
        self.float()
        self._check_vocabulary(folder)
        self.is_set_up = True
        return self

    def _renamed(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        own = self.model_.state_dict()
        renamed = rename_weights(tensors, own, prefix=self.model_.base_model_prefix, layers=self.layers)
        return {f"model_.{name}": tensor for name, tensor in renamed.items()}

    def _allocate(self) -> None:
        if self.config_ is None:
            self.setup_from(locate(self.source, self.revision))
        else:
            self.model_ = _build(self.config_)

    def _check_vocabulary(self, folder: Path) -> None:
        rows = self.embeddings.num_embeddings
        if self.tokenizer.end > rows:
            raise ArtifactError(
                f"the tokenizer has ids up to {self.tokenizer.end - 1}, but the model embeds {rows} ids; "
                "they do not belong together",
                path=folder,
            )

    @property
    def _built(self) -> Any:
        if not hasattr(self, "model_"):
            raise NotFittedError("this backbone is not set up; call setup() first")
        return self.model_

    def _write_assets(self, folder: Path) -> None:
        (folder / "config.json").write_text(json.dumps(self.config_, indent=2), encoding="utf-8")
        self.tokenizer.save(folder)

    def _read_assets(self, folder: Path) -> None:
        self.config_ = _read_config(folder, None)
        self.tokenizer_ = Tokenizer.load(folder)

    def _identity(self) -> str:
        config = {key: value for key, value in (self.config_ or {}).items() if key not in _IDLE}
        return json.dumps(config, sort_keys=True) + self.tokenizer.to_text()


def _place(folder: Path, side: Side) -> tuple[Path, Path | None, str | None]:
    """The folder of the files; for a Counterpoint model, also its folder and the backbone's name in it."""
    ours = saved_model(folder)
    name = None if ours is None else backbone_in(ours, side)
    return folder if ours is None else ours / "assets" / str(name), ours, name


def _read_tokenizer(place: Path, ours: Path | None) -> Tokenizer:
    known = ours is not None or is_minilm_tokenizer(place)
    return Tokenizer.load(place) if known else Tokenizer.from_pretrained(place)


def _read_config(folder: Path, layers: Layers) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    for name in (*_LAYERS, "num_labels"):
        count = config.get(name) or 0
        if not isinstance(count, int) or not 0 <= count <= MOST:
            raise ArtifactError(
                f"{name} is {count!r}, expected a whole number from 0 to {MOST:,}",
                path=folder / "config.json",
            )
    return config if layers is None else _cut(config, layers)


def _cut(config: dict[str, Any], layers: int | Sequence[int]) -> dict[str, Any]:
    if (name := next((key for key in _LAYERS if key in config), None)) is None:
        raise ConfigError(f"Transformer: layers={layers}, but this configuration does not name its layers")
    if isinstance(layers, int):
        if not 0 <= layers <= config[name]:
            raise ConfigError(f"Transformer: layers is {layers}, this model has {config[name]}")
        layers = range(layers)
    elif not all(0 <= layer < config[name] for layer in layers) or sorted(set(layers)) != list(layers):
        raise ConfigError(
            f"Transformer: layers is {list(layers)}, expected rising numbers from 0 to {config[name] - 1}"
        )
    kinds = {}
    if "layer_types" in config:  # ModernBERT
        kinds = {"layer_types": [config["layer_types"][layer] for layer in layers]}
    return {**config, name: len(layers), **kinds}


def _build(config: dict[str, Any], folder: Path | None = None) -> Any:
    """Build a model with random weights; a checkpoint's own code is never run.

    An ordinary BERT is built by our `Bert`, which loads in a tenth of the time; others by transformers.
    """
    plain = bert_settings(config)
    try:
        return _built_by_transformers(config, folder) if plain is None else Bert(plain).float()
    except CounterpointError:
        raise
    except Exception as error:  # KeyError for an activation, ZeroDivisionError for a size of 0, and so on
        said = str(error).partition("\nException raised from")[0]  # torch's own stack trace follows
        raise ArtifactError(
            f"no model can be built from these settings ({type(error).__name__}: {said})", path=folder
        ) from error


def _built_by_transformers(config: dict[str, Any], folder: Path | None) -> Any:
    from transformers import CONFIG_MAPPING, AutoConfig, AutoModel

    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        custom = "; it brings its own code, which is not run" if "auto_map" in config else ""
        raise ArtifactError(f"transformers has no model of type {kind!r}{custom}", path=folder)
    rest = {key: value for key, value in config.items() if key not in ("model_type", "dtype", "torch_dtype")}
    known = AutoConfig.for_model(kind, **rest)  # checks the settings, and raises any exception
    if known.is_encoder_decoder:
        raise ArtifactError(
            f"{kind!r} has an encoder and a decoder; only encoders are supported", path=folder
        )
    model = AutoModel.from_config(known, trust_remote_code=False).float()
    if isinstance(getattr(model, "pooler", None), nn.Module):
        model.pooler = None  # BERT's next-sentence layer: no head reads it, and many checkpoints lack it
    return model
