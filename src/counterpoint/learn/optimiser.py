"""Which parameters are trained (name patterns), AdamW, and the learning rate schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.optim import AdamW

from counterpoint.errors import ConfigError
from counterpoint.learn.stages import Train

__all__ = [
    "choose_parameters",
    "make_optimiser",
    "named_parameters",
    "rate_at",
    "restore_state",
    "state_of",
    "take_turns",
]


def named_parameters(roots: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    """Every parameter by the name that `learn` and `freeze` refer to, each object once.

    `roots` are modules by the prefix of their parameters' names, such as "" or "transforms.".
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
    """Enable training for the parameters that match `learn` and not `freeze`, and disable it for all others.

    Raises:
        ConfigError: a pattern matches nothing, or no parameter is left to train.
    """
    roots = ", ".join(sorted({name.split(".")[0] for name in parameters}))
    _check_used((*learn, *freeze), parameters, f"no parameter matches {{!r}}; they begin with {roots}")
    chosen = {}
    for name, parameter in parameters.items():
        wanted = _matches(name, learn) and not _matches(name, freeze)
        parameter.requires_grad_(wanted)
        if wanted:
            chosen[name] = parameter
    if not chosen:
        raise ConfigError("nothing is left to learn: `freeze` covers everything that `learn` names")
    return chosen


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _check_used(patterns: Iterable[str], names: Iterable[str], message: str) -> None:
    faults = [message.format(p) for p in patterns if not any(fnmatchcase(name, p) for name in names)]
    if faults:
        raise ConfigError(*faults)


def take_turns(chosen: Mapping[str, nn.Parameter], alternate: Sequence[str], step: int) -> None:
    """Enable training for the parameters whose turn it is at a step, and for those without turns.

    `alternate` are patterns of those that learn in turn, one pattern per step, from step 0.

    Raises:
        ConfigError: a pattern matches no parameter that learns.
    """
    _check_used(alternate, chosen, "alternate: {!r} matches nothing that learns")
    for name, parameter in chosen.items():
        own = [at for at, pattern in enumerate(alternate) if fnmatchcase(name, pattern)]
        parameter.requires_grad_(not own or step % len(alternate) in own)


def make_optimiser(chosen: Mapping[str, nn.Parameter], stage: Train) -> AdamW:
    """Create a fused AdamW. Vectors (biases, norms) have no weight decay.

    Each parameter group's `factor` multiplies the stage's learning rate.

    Raises:
        ConfigError: a pattern of `lr_factors` matches no parameter that learns.
    """
    _check_used(stage.lr_factors, chosen, "lr_factors: {!r} matches nothing that learns")
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
    """The learning rate at a step (from 0) of `total`."""
    warmup = stage.warmup if stage.warmup >= 1 else math.ceil(stage.warmup * total)
    if step < warmup:
        return stage.lr * (step + 1) / warmup
    left = max(0.0, (total - step) / max(1, total - warmup))
    shape = {"constant": 1.0, "linear": left, "cosine": 0.5 * (1 + math.cos(math.pi * (1 - left)))}
    return stage.lr * shape[stage.schedule]


def state_of(optimiser: AdamW, chosen: Mapping[str, nn.Parameter]) -> dict[str, torch.Tensor]:
    """The optimiser's state as named tensors."""
    return {
        f"{name}/{key}": value.detach().cpu() if torch.is_tensor(value) else torch.tensor(value)
        for name, parameter in chosen.items()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def restore_state(
    optimiser: AdamW, chosen: Mapping[str, nn.Parameter], tensors: Mapping[str, torch.Tensor]
) -> None:
    """Restore the result of `state_of`."""
    for key, tensor in tensors.items():
        name, _, entry = key.rpartition("/")
        parameter = chosen[name]
        optimiser.state[parameter][entry] = tensor.to(parameter.device, copy=True)
