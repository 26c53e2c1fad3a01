"""What every part promises. A new one joins by its entry in `examples.py`; without one this fails."""

import importlib
import inspect
import pkgutil

import pytest
from tests.contracts.examples import EXAMPLES

import counterpoint
from counterpoint.errors import ArtifactError
from counterpoint.part import Part
from counterpoint.testing.parts import RULES


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


# -- what it does -------------------------------------------------------------------------------------------


@every_part
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_rule(cls, arguments, rule, tmp_path):
    rule(cls, arguments, tmp_path)


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
