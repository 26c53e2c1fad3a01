"""What is trained, by which steps: patterns of parameter names, AdamW, and how its rate rises and falls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.optim import AdamW

from counterpoint.errors import ConfigError
from counterpoint.learn.stages import Train

__all__ = ["choose_parameters", "make_optimiser", "named_parameters", "rate_at", "turn_of"]


def named_parameters(roots: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    """Every parameter under the name that `learn` and `freeze` go by; each object once.

    Args:
        roots: modules by what the names of their parameters begin with: "" or "transforms.".
    """
    found: dict[str, nn.Parameter] = {}
    seen: set[int] = set()
    for prefix, module in roots.items():
        for name, parameter in module.named_parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found[prefix + name] = parameter
    return found


def choose_parameters(
    parameters: Mapping[str, nn.Parameter], learn: Sequence[str], freeze: Sequence[str]
) -> dict[str, nn.Parameter]:
    """Let those parameters learn that match `learn` and not `freeze`, and no others.

    Raises:
        ConfigError: a pattern that matches nothing, or nothing is left to learn.
    """
    unused = [
        pattern for pattern in (*learn, *freeze) if not any(fnmatchcase(name, pattern) for name in parameters)
    ]
    if unused:
        roots = sorted({name.split(".")[0] for name in parameters})
        raise ConfigError(
            *(f"no parameter matches {pattern!r}; they begin with {', '.join(roots)}" for pattern in unused)
        )
    chosen = {}
    for name, parameter in parameters.items():
        wanted = any(fnmatchcase(name, pattern) for pattern in learn)
        wanted = wanted and not any(fnmatchcase(name, pattern) for pattern in freeze)
        parameter.requires_grad_(wanted)
        if wanted:
            chosen[name] = parameter
    if not chosen:
        raise ConfigError("nothing is left to learn: `freeze` holds everything that `learn` names")
    return chosen


def turn_of(
    step: int, chosen: Mapping[str, nn.Parameter], patterns: Sequence[str]
) -> dict[str, nn.Parameter]:
    """The parameters that learn at a step, where some learn in turn.

    Args:
        step: from 0.
        chosen: all that learn.
        patterns: one for each turn; a name belongs to the first that it matches, or learns always.
    """
    turns = {
        name: next((turn for turn, pattern in enumerate(patterns) if fnmatchcase(name, pattern)), None)
        for name in (chosen if patterns else ())
    }
    now = step % len(patterns) if patterns else 0
    return {name: p for name, p in chosen.items() if turns.get(name) in (None, now)}


def make_optimiser(chosen: Mapping[str, nn.Parameter], stage: Train) -> AdamW:
    """AdamW, in one pass over each tensor; vectors (biases, norms) do not decay.

    Each group of parameters says by which `factor` its rate differs from the stage's.

    Raises:
        ConfigError: a pattern of `lr_factors` that matches nothing that learns.
    """
    unused = [p for p in stage.lr_factors if not any(fnmatchcase(name, p) for name in chosen)]
    if unused:
        raise ConfigError(*(f"lr_factors: {pattern!r} matches nothing that learns" for pattern in unused))
    groups: dict[tuple[bool, float], list[nn.Parameter]] = {}
    for name, parameter in chosen.items():
        factors = (factor for pattern, factor in stage.lr_factors.items() if fnmatchcase(name, pattern))
        groups.setdefault((parameter.dim() >= 2, next(factors, 1.0)), []).append(parameter)
    return AdamW(
        [
            {"params": found, "weight_decay": stage.weight_decay * decays, "factor": factor}
            for (decays, factor), found in sorted(groups.items(), key=lambda group: group[0], reverse=True)
        ],
        lr=stage.lr,
        fused=True,
    )


def rate_at(step: int, total: int, stage: Train) -> float:
    """The learning rate of a step (from 0) of `total`."""
    warmup = stage.warmup if stage.warmup >= 1 else math.ceil(stage.warmup * total)
    if step < warmup:
        return stage.lr * (step + 1) / warmup
    left = max(0.0, (total - step) / max(1, total - warmup))
    shape = {"constant": 1.0, "linear": left, "cosine": 0.5 * (1 + math.cos(math.pi * (1 - left)))}
    return stage.lr * shape[stage.schedule]


def state_of(optimiser: AdamW, chosen: Mapping[str, nn.Parameter]) -> dict[str, torch.Tensor]:
    """The optimiser's memory as named tensors."""
    return {
        f"{name}/{key}": value.detach().cpu() if torch.is_tensor(value) else torch.tensor(value)
        for name, parameter in chosen.items()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def restore_state(
    optimiser: AdamW, chosen: Mapping[str, nn.Parameter], tensors: Mapping[str, torch.Tensor]
) -> None:
    """The inverse of `state_of`."""
    for key, tensor in tensors.items():
        name, _, entry = key.rpartition("/")
        parameter = chosen[name]
        optimiser.state[parameter][entry] = tensor.to(parameter.device, copy=True)
