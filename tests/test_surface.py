"""What the package shows, what it imports, and what importing it costs."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import counterpoint

SOURCE = Path(counterpoint.__file__).parent

# Imports point from a later layer to an earlier one, or stay within one package.
LAYERS = [
    {
        "errors",
        "escapes",
        "files",
        "folders",
        "foreign",
        "frames",
        "headers",
        "lazily",
        "locks",
        "memory",
        "pages",
        "provenance",
        "recent",
        "shipped",
        "suggestion",
        "version",
    },
    {"config", "dry_run", "typed", "types"},
    {"identifiers", "tensors", "vectors", "weighted"},
    {"part"},
    {"data", "encode", "score", "transform"},
    {"index"},
    {"search"},
    {"explain", "onnx_encoder", "onnx_export", "loading", "measure", "model", "plots", "presets", "scale"},
    {"learn", "sweep"},
    {"cluster", "exporters", "library", "recipe", "testing"},
    {"integrations", "serve"},
    {"cli"},
]
TORCH_FREE = {
    "config",
    "errors",
    "escapes",
    "files",
    "folders",
    "identifiers",
    "locks",
    "memory",
    "recent",
    "foreign",
    "shipped",
    "suggestion",
    "typed",
    "types",
    "data",
    "index",
    "search",
    "explain",
    "onnx_encoder",
    "exporters",
    "measure",
    "plots",
    "scale",
    "sweep",
    "library",
    "cli",
}
MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages([str(SOURCE)], "counterpoint.") if "__main__" not in name
)


def layer(module):
    top = module.split(".")[1]
    return next(i for i, names in enumerate(LAYERS) if top in names)


def imports(module):
    """Modules of ours that a module imports when it is loaded or later, type checking aside."""
    path = Path(importlib.util.find_spec(module).origin)
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("counterpoint."):
            yield node.module


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downward(module):
    for other in imports(module):
        ours, theirs = module.split(".")[1], other.split(".")[1]
        assert ours == theirs or layer(other) <= layer(module), f"{module} imports {other}"


@pytest.mark.parametrize(
    "package",
    [m for m in MODULES if (SOURCE / m.split(".")[1] / "__init__.py").exists() and m.count(".") == 1],
)
def test_all_names_what_a_package_exports(package):
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", [])
    assert list(exported) == sorted(exported, key=lambda name: (not name.isupper(), name[0].islower(), name))
    for name in exported:
        assert getattr(module, name) is not None


def test_what_needs_no_torch_loads_none():
    modules = [m for m in MODULES if m.split(".")[1] in TORCH_FREE]
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\n"
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_help_imports_little():
    """What it costs is measured by `benchmarks/speed/shell.py`."""
    command = [sys.executable, "-X", "importtime", "-m", "counterpoint", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "evaluate" in done.stdout
    assert not re.search(r"\| +(torch|transformers|numpy)$", done.stderr, re.MULTILINE)


def dangers(tree):
    """Calls and imports that run code from data."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ("pickle", "dill", "joblib"))
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("eval", "exec", "torch.load", "pickle.load", "pickle.loads"):
                yield name
            for keyword in node.keywords:
                if (
                    keyword.arg in ("trust_remote_code", "allow_pickle")
                    and ast.unparse(keyword.value) != "False"
                ):
                    yield keyword.arg


def test_no_pickle_eval_or_remote_code():
    assert list(dangers(ast.parse("import pickle\neval('1')\nf(allow_pickle=x)"))) == [
        "pickle",
        "eval",
        "allow_pickle",
    ]
    for path in SOURCE.rglob("*.py"):
        assert list(dangers(ast.parse(path.read_text()))) == [], path
