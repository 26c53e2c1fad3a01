"""What a search imports. What it costs is measured by `benchmarks/speed/shell.py`."""

import json
import subprocess
import sys

import pytest
from tests.cli.conftest import DOCUMENTS

import counterpoint as cp

NEVER = ("pandas", "sklearn", "numba", "matplotlib", "IPython", "accelerate", "datasets")
BUILDS = ("build", "auto_codec", "parallel", "writing", "lexical_builder")
HEAVY = ("transformers", "huggingface_hub", "scipy", "bm25s", "filelock", "sympy", "torch._dynamo", "jinja2")
OURS = (
    "asking", "batch", "catalogue", "complete", "console", "lazy", "main", "options", "outputs", "progress",
    "search", "streams",
)  # fmt: skip
SCRIPT = """
import json, sys
from counterpoint.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def modules_of(*arguments):
    """All modules that a command has imported when it ends."""
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(names)


@pytest.mark.parametrize("more", [(), ("-w", "lexical"), ("--explain",), ("--json",)])
def test_a_lexical_search_imports_little(lexical, more):
    names = modules_of("search", lexical, "whale", *more)
    assert not names & {*NEVER, *HEAVY, "torch", "tokenizers", "tqdm", "multiprocessing"}
    assert not names & {f"counterpoint.index.{name}" for name in BUILDS}
    ours = {name.rpartition(".")[2] for name in names if name.startswith("counterpoint.cli.")}
    assert ours <= set(OURS)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost") / "hybrid"
    cp.index([text for _, text in DOCUMENTS.values()], folder).close()
    return folder


@pytest.mark.minilm
@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--explain",), ("--explain=full", "--json"), ("-w", "words")])
def test_the_default_search_imports_neither_torch_nor_transformers(hybrid, more):
    names = modules_of("search", hybrid, "whale", *more)
    assert "counterpoint.onnx_encoder.integer_session" in names
    assert not names & {*NEVER, *HEAVY, "torch", "onnx", "onnxruntime", "safetensors"}


@pytest.mark.minilm
@pytest.mark.slow
def test_a_search_by_torch_imports_no_other_library_of_its_size(hybrid):
    names = modules_of("search", hybrid, "whale", "--explain", "--backend", "torch")
    assert "torch" in names and not names & {*NEVER, *HEAVY, "onnxruntime"}
