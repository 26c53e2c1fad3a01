"""What every part promises. A new one joins by its entry in `examples.py`; without one this fails."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping, Sequence

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.contracts.examples import EXAMPLES
from torch import nn

import counterpoint
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.part import Part


def parts():
    """Every part of the package, abstract ones included."""
    for module in pkgutil.walk_packages(counterpoint.__path__, "counterpoint."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    def below(cls):
        return [found for child in cls.__subclasses__() for found in (child, *below(child))]

    return [cls for cls in dict.fromkeys(below(Part)) if cls.__module__.startswith("counterpoint.")]


PARTS = parts()
CONCRETE = {cls.__name__: cls for cls in PARTS if not inspect.isabstract(cls)}
CASES = [
    pytest.param(CONCRETE[name], example, id=f"{name}-{index}")
    for name, examples in EXAMPLES.items()
    if name in CONCRETE
    for index, example in enumerate(examples)
]


@pytest.fixture
def arguments(example, tiny_bert_folder):
    return example(tiny_bert_folder)


@pytest.fixture
def part(cls, arguments):
    return cls(**arguments)


@pytest.fixture
def saved(part, tmp_path):
    part.setup()
    part.save(tmp_path / "part")
    return tmp_path / "part"


every_part = pytest.mark.parametrize(("cls", "example"), CASES)


def same(stored, given):
    """Whether an attribute is the argument, or torch's container around the very same parts."""
    if isinstance(stored, nn.ModuleDict):
        given = given or {}
        return isinstance(given, Mapping) and all(same(stored[key], given[key]) for key in {*stored, *given})
    if isinstance(stored, nn.ModuleList):
        return isinstance(given, Sequence) and all(same(a, b) for a, b in zip(stored, given, strict=True))
    return stored is given or stored == given


# -- the class ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CONCRETE))
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


def test_examples_are_of_parts_that_exist():
    assert not EXAMPLES.keys() - CONCRETE.keys()


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_is_final_or_abstract(cls):
    if inspect.isabstract(cls):
        assert not getattr(cls, "__final__", False)
    else:
        assert getattr(cls, "__final__", False), "mark it with typing.final"
        assert not cls.__subclasses__()


@pytest.mark.parametrize("cls", CONCRETE.values(), ids=CONCRETE)
def test_is_exported_under_its_saved_name(cls):
    module = ".".join(cls.__module__.split(".")[:2])
    public = importlib.import_module(module)
    assert getattr(public, cls.__name__) is cls and cls.__name__ in public.__all__


@pytest.mark.parametrize("cls", CONCRETE.values(), ids=CONCRETE)
def test_has_at_most_six_settings_and_all_are_named(cls):
    settings = cls.parameters_of()
    assert len(settings) <= 6
    assert all(found.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD for found in settings.values())


# -- declaring ---------------------------------------------------------------------------------------------


@every_part
def test_init_only_stores_its_arguments(cls, part, arguments):
    for name, given in arguments.items():
        assert same(getattr(part, name), given), name
    for name, setting in cls.parameters_of().items():
        if name not in arguments:
            assert same(getattr(part, name), setting.default), name
    assert not part.is_set_up and not list(part.parameters()) and not list(part.buffers())


@every_part
def test_survives_the_trip_through_plain_data(part):
    config = part.to_dict()
    again = Part.from_dict(config)
    assert type(again) is type(part) and again.to_dict() == config and not again.is_set_up
    assert part.setup().to_dict() == Part.from_dict(part.to_dict()).to_dict()


@every_part
def test_unknown_settings_are_refused(part):
    with pytest.raises(ConfigError, match="unknown argument 'nonsense'"):
        Part.from_dict({**part.to_dict(), "nonsense": 1})


@every_part
def test_setup_happens_once(part):
    first = {name: tensor.clone() for name, tensor in part.setup().state_dict().items()}
    again = part.setup()
    assert again is part
    assert all(torch.equal(tensor, first[name]) for name, tensor in part.state_dict().items())


# -- saving ------------------------------------------------------------------------------------------------


@every_part
def test_comes_back_bit_for_bit(part, saved):
    again = Part.load(saved)
    assert type(again) is type(part) and again.to_dict() == part.to_dict() and not again.training
    own, loaded = part.state_dict(), again.state_dict()
    assert own.keys() == loaded.keys()
    assert all(torch.equal(own[name], loaded[name]) for name in own)
    assert again.fingerprint() == part.fingerprint()


@every_part
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_keeps_its_dtype_and_device(part, tmp_path, dtype):
    part.setup().to(dtype).save(tmp_path / "part")
    again = Part.load(tmp_path / "part")
    for name, tensor in part.state_dict().items():
        assert tensor.dtype == (dtype if tensor.is_floating_point() else torch.int64)
        assert (
            again.state_dict()[name].dtype == tensor.dtype and again.state_dict()[name].device.type == "cpu"
        )
    assert again.fingerprint() == part.fingerprint()
    assert all(parameter.requires_grad for parameter in again.parameters())
    part.to("meta")
    assert all(tensor.is_meta for tensor in part.state_dict().values())


@every_part
def test_fingerprint_sees_every_weight(part):
    first = part.fingerprint()
    assert part.fingerprint() == first
    for tensor in part.state_dict().values():
        before = tensor.clone()
        tensor += 1
        assert part.fingerprint() != first
        tensor.copy_(before)
    assert part.fingerprint() == first


@every_part
def test_loading_is_strict(part, saved):
    path = saved / "weights.safetensors"
    tensors = load_file(path)
    save_file({**tensors, "surplus": torch.zeros(1)}, path)
    refused(saved, "'surplus' is not used")
    for name, tensor in list(tensors.items())[:1]:
        rest = {other: kept for other, kept in tensors.items() if other != name}
        save_file(rest, path)
        refused(saved, f"'{name}' is missing")
        save_file({**rest, name: torch.zeros(*tensor.shape, 2)}, path)
        refused(saved, f"'{name}' has shape")
    path.write_bytes(path.read_bytes()[:20] if tensors else b"\x00")
    refused(saved, "cannot be read")
    path.unlink()
    refused(saved, "missing")


@every_part
def test_other_damage_is_named(saved):
    header = (saved / "part.toml").read_text()
    (saved / "part.toml").write_text(header.replace("format = 1", "format = 99"))
    refused(saved, "format 99")
    (saved / "part.toml").write_text("= nonsense")
    refused(saved, "not valid TOML")
    (saved / "part.toml").unlink()
    refused(saved, "not a saved Counterpoint part")


def refused(folder, message):
    with pytest.raises(ArtifactError, match=message):
        Part.load(folder)
