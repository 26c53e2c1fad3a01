"""The contract of parts: declared by their arguments, and unchanged after saving and loading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.part import Part
from counterpoint.testing.rules import broken_rule

__all__ = ["RULES", "check_part"]


def check_part(cls: type[Part], arguments: Mapping[str, Any] | None = None) -> None:
    """Check a part.

    Args:
        cls: its class.
        arguments: of its constructor, for a small one.

    Raises:
        AssertionError: naming the broken rule.
        TypeError: it is no class of parts.

    Example:
        >>> from counterpoint.transform import Normalise
        >>> check_part(Normalise)
    """
    if not (isinstance(cls, type) and issubclass(cls, Part)):
        raise TypeError(f"expected a class derived from Part, found {cls!r}")
    given = dict(arguments or {})
    for rule in RULES:
        with TemporaryDirectory() as folder:
            try:
                rule(cls, deepcopy(given), Path(folder))  # copies, because rules set up parts among them
            except Exception as error:
                raise broken_rule(cls, f"{rule.__name__!r}", rule, error) from error


def stores_its_arguments(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """`__init__` stores its arguments under their names, or refuses them, and does nothing else."""
    part = cls(**arguments)
    for name, setting in cls.parameters_of().items():
        wanted = arguments[name] if name in arguments else setting.default
        assert hasattr(part, name), f"there is no self.{name}"
        assert _same(getattr(part, name), wanted), f"self.{name} is {getattr(part, name)!r}"
    assert not part.is_set_up, "it is set up already"
    made = [name for name, _ in (*part.named_parameters(), *part.named_buffers())]
    assert not made, f"it makes {', '.join(made)}; make these in _allocate"


def marks_what_it_learns(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """Names of learnt state, layers of torch included, end in `_`."""
    part = cls(**arguments).setup()
    own = [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]
    own += [
        (name, child)
        for name, child in part.named_children()
        if not isinstance(child, Part) and name not in cls.parameters_of() and list(child.parameters())
    ]
    plain = [name for name, _ in own if not name.endswith("_")]
    assert not plain, f"call them {', '.join(f'{name}_' for name in plain)}"


def survives_the_trip_through_plain_data(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """A part restored from `to_dict` has equal settings."""
    part = cls(**arguments)
    config = part.to_dict()
    again = Part.from_dict(config)
    assert type(again) is type(part) and again.to_dict() == config and not again.is_set_up
    assert part.setup().to_dict() == Part.from_dict(part.to_dict()).to_dict()


def refuses_unknown_settings(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """An unknown argument is refused by name."""
    config = {**cls(**arguments).to_dict(), "nonsense": 1}
    _refused(lambda: Part.from_dict(config), ConfigError, "unknown argument 'nonsense'")


def is_set_up_once(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """A second `setup` changes nothing."""
    part = cls(**arguments)
    first = {name: tensor.clone() for name, tensor in part.setup().state_dict().items()}
    assert part.setup() is part
    assert all(torch.equal(tensor, first[name]) for name, tensor in part.state_dict().items())


def comes_back_bit_for_bit(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """A saved part is loaded without any change."""
    part = cls(**arguments).setup()
    part.save(folder / "part")
    again = Part.load(folder / "part")
    assert type(again) is type(part) and again.to_dict() == part.to_dict() and not again.training
    own, loaded = part.state_dict(), again.state_dict()
    assert own.keys() == loaded.keys(), f"{sorted(own)} became {sorted(loaded)}"
    assert all(torch.equal(own[name], loaded[name]) for name in own)
    assert again.fingerprint() == part.fingerprint()


def keeps_its_dtype(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """A part in another precision keeps it through save and load, and can be moved to other devices."""
    for dtype in (torch.float64, torch.bfloat16):
        part, path = cls(**deepcopy(dict(arguments))).setup().to(dtype), folder / str(dtype)
        part.save(path)
        again = Part.load(path)
        for name, tensor in part.state_dict().items():
            assert tensor.dtype == (dtype if tensor.is_floating_point() else torch.int64), name
            loaded = again.state_dict()[name]
            assert loaded.dtype == tensor.dtype and loaded.device.type == "cpu", name
        assert again.fingerprint() == part.fingerprint()
        assert all(parameter.requires_grad for parameter in again.parameters())
        part.to("meta")
        assert all(tensor.is_meta for tensor in part.state_dict().values())


def has_a_fingerprint_of_every_weight(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """The fingerprint changes with every tensor, and with nothing else."""
    part = cls(**arguments)
    first = part.fingerprint()
    assert part.fingerprint() == first
    for name, tensor in part.state_dict().items():
        before = tensor.clone()
        tensor += 1
        assert part.fingerprint() != first, f"{name} is not in it"
        tensor.copy_(before)
    assert part.fingerprint() == first


def is_loaded_strictly(cls: type[Part], arguments: Mapping[str, Any], folder: Path) -> None:
    """A missing, unused or differently shaped weight is refused by name, and damage is refused."""
    cls(**arguments).setup().save(folder / "part")
    path = folder / "part" / "weights.safetensors"
    tensors = load_file(path)

    def refused(message: str) -> None:
        _refused(lambda: Part.load(folder / "part"), ArtifactError, message)

    save_file({**tensors, "surplus": torch.zeros(1)}, path)
    refused("'surplus' is not used")
    for name, tensor in list(tensors.items())[:1]:
        rest = {other: kept for other, kept in tensors.items() if other != name}
        save_file(rest, path)
        refused(f"'{name}' is missing")
        save_file({**rest, name: torch.zeros(*tensor.shape, 2)}, path)
        refused(f"'{name}' has shape")
    path.write_bytes(path.read_bytes()[:20] if tensors else b"\x00")
    refused("cannot be read")
    path.unlink()
    refused("missing")


RULES = (
    stores_its_arguments,
    marks_what_it_learns,
    survives_the_trip_through_plain_data,
    refuses_unknown_settings,
    is_set_up_once,
    comes_back_bit_for_bit,
    keeps_its_dtype,
    has_a_fingerprint_of_every_weight,
    is_loaded_strictly,
)


def _refused(act: Callable[[], object], kind: type[Exception], message: str) -> None:
    try:
        act()
    except kind as error:
        assert message in str(error), f"the message does not say {message!r}: {error}"
    else:
        raise AssertionError(f"nothing was refused; expected {message!r}")


def _same(stored: object, given: object) -> bool:
    """Whether an attribute is the argument, or a torch container of the same parts."""
    if isinstance(stored, nn.ModuleDict):
        given = given or {}
        return isinstance(given, Mapping) and all(
            _same(stored[key] if key in stored else None, given.get(key)) for key in {*stored, *given}
        )
    if isinstance(stored, nn.ModuleList):
        return isinstance(given, Sequence) and all(_same(a, b) for a, b in zip(stored, given, strict=True))
    return stored is given or stored == given
