"""BERT's encoder in plain torch, with the same results as transformers.

Importing transformers costs more than two seconds of CPU, ten times the cost of a query. Weight names,
kernels and the order of random numbers are the same as in transformers. So vectors, gradients and random
weights are equal to the last bit, as `tests/encode/test_bert.py` checks. A configuration with any other
setting is left to transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Bert", "BertSettings", "bert_settings"]

States = Float[Tensor, "b t h"]
Mask = Bool[Tensor, "b 1 t t"] | None

# Further entries that a configuration may hold, because they change no hidden state.
IDLE = frozenset({
    "_name_or_path", "architectures", "bos_token_id", "classifier_dropout", "dtype", "eos_token_id",
    "finetuning_task", "id2label", "label2id", "model_type", "num_labels", "problem_type",
    "tie_word_embeddings", "torch_dtype", "transformers_version", "use_cache",
})  # fmt: skip
FIXED: Mapping[str, tuple[object, ...]] = {
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute",),
    "gradient_checkpointing": (False,),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
}
SIZES = (
    "vocab_size", "hidden_size", "num_attention_heads", "intermediate_size", "max_position_embeddings",
    "type_vocab_size",
)  # fmt: skip
SHARES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
SMALL = ("initializer_range", "layer_norm_eps")


@final
@dataclass(frozen=True)
class BertSettings:
    """Settings that decide shapes and arithmetic, with the names and defaults of `config.json`."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0


def bert_settings(config: Mapping[str, Any]) -> BertSettings | None:
    """Read the settings in a `config.json`; None if it is not an ordinary BERT."""
    default = {field.name: field.default for field in fields(BertSettings)}
    rest = config.keys() - default.keys() - IDLE
    said = {name: config.get(name, value) for name, value in default.items()}
    if config.get("model_type") != "bert" or not all(config[name] in FIXED.get(name, ()) for name in rest):
        return None
    return BertSettings(**said) if _is_usual(said) else None


def _is_usual(said: Mapping[str, Any]) -> bool:
    sizes = [said[name] for name in SIZES]
    pad, layers = said["pad_token_id"], said["num_hidden_layers"]
    return (
        all(type(size) is int and size > 0 for size in sizes)
        and type(layers) is int
        and layers >= 0
        and said["hidden_size"] % said["num_attention_heads"] == 0
        and all(type(said[name]) in (int, float) and 0 <= said[name] < 1 for name in SHARES)
        and all(type(said[name]) is float and 0 < said[name] < 1 for name in SMALL)
        and (pad is None or (type(pad) is int and 0 <= pad < said["vocab_size"]))
    )


class BertStates(NamedTuple):
    """Output of `Bert`.

    Attributes:
        last_hidden_state: of the last layer, (texts, positions, components).
        hidden_states: the input of the first layer, then the output of each layer; None unless requested.
    """

    last_hidden_state: States
    hidden_states: tuple[States, ...] | None


@final
class Bert(nn.Module):
    """A BERT encoder without pooler.

    Args:
        settings: shapes and arithmetic.
    """

    base_model_prefix = "bert"
    pooler = None

    def __init__(self, settings: BertSettings):
        super().__init__()
        self.config = settings
        self.embeddings = _Embeddings(settings)
        self.encoder = _Layers(settings)
        # transformers draws the pooler, too. Drawing it here keeps later random numbers the same.
        pooler = nn.Linear(settings.hidden_size, settings.hidden_size)
        for module in [*self.modules(), pooler]:
            _draw(module, settings.initializer_range)

    def forward(
        self,
        input_ids: Int[Tensor, "b t"],
        attention_mask: Int[Tensor, "b t"],
        token_type_ids: Int[Tensor, "b t"] | None = None,
        output_hidden_states: bool = False,
    ) -> BertStates:
        """Compute hidden states; a position whose mask is 0 is not attended to."""
        states = self.embeddings(input_ids, token_type_ids)
        mask, made = _mask(attention_mask), [states]
        for layer in self.encoder.layer:
            states = layer(states, mask)
            made.append(states)
        return BertStates(states, tuple(made) if output_hidden_states else None)

    def get_input_embeddings(self) -> nn.Embedding:
        """The word-embedding table."""
        return self.embeddings.word_embeddings


class _Embeddings(nn.Module):
    def __init__(self, settings: BertSettings):
        super().__init__()
        size, positions = settings.hidden_size, settings.max_position_embeddings
        self.word_embeddings = _table(settings.vocab_size, size, settings.pad_token_id)
        self.position_embeddings = _table(positions, size)
        self.token_type_embeddings = _table(settings.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=settings.layer_norm_eps)
        self.dropout = nn.Dropout(settings.hidden_dropout_prob)

    def forward(
        self, input_ids: Int[Tensor, "b t"], token_type_ids: Int[Tensor, "b t"] | None = None
    ) -> States:
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        made = self.word_embeddings(input_ids) + self.token_type_embeddings(types)
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        return self.dropout(self.LayerNorm(made + self.position_embeddings(places)))


class _Layers(nn.Module):
    def __init__(self, settings: BertSettings):
        super().__init__()
        self.layer = nn.ModuleList(_Layer(settings) for _ in range(settings.num_hidden_layers))


class _Layer(nn.Module):
    def __init__(self, settings: BertSettings):
        super().__init__()
        self.attention = _Attention(settings)
        dense = nn.Linear(settings.hidden_size, settings.intermediate_size)
        self.intermediate = nn.ModuleDict({"dense": dense})
        self.output = _Output(settings.intermediate_size, settings)

    def forward(self, states: States, mask: Mask) -> States:
        attended = self.attention(states, mask)
        return self.output(functional.gelu(self.intermediate["dense"](attended)), attended)


class _Attention(nn.Module):
    def __init__(self, settings: BertSettings):
        super().__init__()
        self.self = _SelfAttention(settings)
        self.output = _Output(settings.hidden_size, settings)

    def forward(self, states: States, mask: Mask) -> States:
        return self.output(self.self(states, mask), states)


class _SelfAttention(nn.Module):
    def __init__(self, settings: BertSettings):
        super().__init__()
        size = settings.hidden_size
        self.head_size = size // settings.num_attention_heads
        self.query, self.key, self.value = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.dropout = nn.Dropout(settings.attention_probs_dropout_prob)

    def forward(self, states: States, mask: Mask) -> States:
        shape = (*states.shape[:-1], -1, self.head_size)
        made = (self.query(states), self.key(states), self.value(states))
        query, key, value = (one.view(shape).transpose(1, 2) for one in made)
        made = functional.scaled_dot_product_attention(
            query, key, value,
            attn_mask=mask,
            dropout_p=self.dropout.p if self.training else 0.0,
            scale=self.head_size**-0.5,
        )  # fmt: skip
        return made.transpose(1, 2).contiguous().reshape(*states.shape[:-1], -1).contiguous()


class _Output(nn.Module):
    def __init__(self, size: int, settings: BertSettings):
        super().__init__()
        self.dense = nn.Linear(size, settings.hidden_size)
        self.LayerNorm = nn.LayerNorm(settings.hidden_size, eps=settings.layer_norm_eps)
        self.dropout = nn.Dropout(settings.hidden_dropout_prob)

    def forward(self, made: Float[Tensor, "b t i"], before: States) -> States:
        return self.LayerNorm(self.dropout(self.dense(made)) + before)


def _table(rows: int, size: int, padding: int | None = None) -> nn.Embedding:
    """Draw values as torch does, to keep the order of random numbers, except on the meta device."""
    values = torch.empty(rows, size)
    if not values.is_meta:
        nn.init.normal_(values)
    return nn.Embedding(rows, size, padding, _weight=values)


def _mask(attention: Int[Tensor, "b t"]) -> Mask:
    """The attention mask; None without padding, because torch's kernel for that case rounds differently."""
    real = attention.bool()
    if real.all():
        return None
    texts, positions = real.shape
    return real[:, None, None, :].expand(texts, 1, positions, positions)


@torch.no_grad()
def _draw(module: nn.Module, spread: float) -> None:
    """Draw BERT's initial weights.

    Skip the meta device: nothing is drawn there, and torch would import its compiler, which costs a second.
    """
    if any(tensor.is_meta for tensor in module.parameters(recurse=False)):
        return
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, mean=0.0, std=spread)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, mean=0.0, std=spread)
        if module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])
