"""What a search imports, and what it costs."""

import json
import subprocess
import sys

import pytest
from tests.cli.commands import in_a_process

from counterpoint.cli.main import main

NEVER = ("pandas", "sklearn", "numba", "matplotlib", "IPython", "accelerate", "datasets")
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
    assert not names & {*NEVER, *HEAVY, "torch", "tokenizers", "tqdm"}
    ours = {name.rpartition(".")[2] for name in names if name.startswith("counterpoint.cli.")}
    assert ours <= set(OURS)


@pytest.fixture
def hybrid(collection, tmp_path, capsys):
    folder = tmp_path / "hybrid"
    assert main(["index", str(collection), "-o", str(folder)]) == 0
    capsys.readouterr()
    return folder


@pytest.mark.minilm
@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--explain",), ("--explain=full", "--json"), ("-w", "words")])
def test_the_default_search_imports_neither_torch_nor_transformers(hybrid, more):
    names = modules_of("search", hybrid, "whale", *more)
    assert "onnxruntime" in names and not names & {*NEVER, *HEAVY, "torch", "onnx", "safetensors"}


@pytest.mark.minilm
@pytest.mark.slow
def test_a_search_by_torch_imports_no_other_library_of_its_size(hybrid):
    names = modules_of("search", hybrid, "whale", "--explain", "--backend", "torch")
    assert "torch" in names and not names & {*NEVER, *HEAVY, "onnxruntime"}


def seconds_of(*arguments, run=in_a_process):
    """CPU of a command: the least of a few, since what else runs only adds to it."""
    resource = pytest.importorskip("resource")
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(spent)


@pytest.mark.slow
def test_a_lexical_search_costs_half_a_second_at_most(lexical):
    assert seconds_of("search", lexical, "whale", "-w", "lexical") <= 0.5


@pytest.mark.minilm
@pytest.mark.slow
def test_the_default_search_costs_a_second_at_most(hybrid):
    assert seconds_of("search", hybrid, "whale") <= 1


@pytest.mark.slow
def test_importing_the_package_costs_a_tenth_of_a_second_at_most():
    def run(code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert seconds_of("import counterpoint", run=run) <= 0.1
