"""What is checked before compiled kernels are used, and that they are compiled anew when they have to be."""

import hashlib
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import counterpoint.index.compiled
import counterpoint.onnx_encoder
from counterpoint.index import paths
from counterpoint.index.codec import rounded
from counterpoint.index.kernel_check import agrees
from counterpoint.index.kernel_names import Kernels

FOLDER = Path(counterpoint.index.compiled.__file__).parent
ENCODER = Path(counterpoint.onnx_encoder.__file__).parent
FILES = sorted([*FOLDER.glob("*.py"), *ENCODER.glob("*.py")])
CACHED = re.compile(r"^@looping|^[^#\n]*cache=True[^#\n]*\)\n(?=def )|^    cache=True", re.MULTILINE)
KERNELS = [path for path in FILES if CACHED.search(path.read_text())]
IMPORT = re.compile(r"^from (counterpoint\.\S+) import (\([^)]*\)|.*)$", re.MULTILINE)
LINE = "# Imported code: {}. numba compiles anew when this file changes, but not when that does."
BEFORE_AVX512 = "avx2 fma bmi bmi2 f16c popcnt"


def settings_for(processor, features):
    """numba's, to compile for a processor."""
    return f"NUMBA_CPU_NAME={processor} NUMBA_CPU_FEATURES=" + ",".join(
        f"+{name}" for name in features.split()
    )


WITHOUT_VBMI = settings_for(
    "cascadelake", f"avx512f avx512bw avx512dq avx512vl avx512cd avx512vnni {BEFORE_AVX512}"
)
WITHOUT_AVX512 = settings_for("haswell", BEFORE_AVX512)


def imported(path):
    """What is compiled with a kernel: the text of our own blocks, and the values of other constants."""
    for module, names in IMPORT.findall(path.read_text()):
        if module.startswith("counterpoint.index.compiled."):
            block = FOLDER / f"{module.rsplit('.', 1)[1]}.py"
            yield block.read_text()
            yield from imported(block)
        else:
            for name in re.findall(r"\w+", names):
                value = getattr(import_module(module), name)
                if isinstance(value, int | float | tuple):
                    yield f"{name} = {value!r}"


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_a_kernel_file_changes_with_what_it_imports(path):
    digest = hashlib.sha256("".join(sorted(set(imported(path)))).encode()).hexdigest()[:8]
    assert LINE.format(digest) in path.read_text(), f"{path}: write {LINE.format(digest)!r}"


def a_little_more(found):
    """A kernel's result with another first number."""
    if isinstance(found, tuple):
        return (a_little_more(found[0]), *found[1:])
    changed = found.copy()
    changed.flat[0] += 1
    return changed


@pytest.mark.parametrize("name", [name for name in Kernels._fields if name not in ("asked", "halves")])
def test_every_kernel_is_checked(name):
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    right = getattr(kernels, name)
    changed = {
        "add_postings": 0,
        "add_sorted": 0,
        "turn": 0,
        "scored": -1,
        "add_scores": 0,
    }  # the argument that it writes to

    def wrong(*asked):
        found = right(*asked)
        if name not in changed:
            return a_little_more(found)
        written = asked[changed[name]]
        (written[1] if isinstance(written, tuple) else written).flat[0] += 1
        return found

    assert agrees(kernels)
    assert not agrees(kernels._replace(**{name: wrong}))


@pytest.mark.parametrize(
    ("setting", "kernel"),
    [
        pytest.param("NUMBA_ENABLE_AVX=0", "compiled, portable", marks=pytest.mark.long),
        ("NUMBA_DISABLE_JIT=1", "numpy"),
        pytest.param(WITHOUT_VBMI, "compiled, AVX-512 VNNI", marks=pytest.mark.long),
        pytest.param(WITHOUT_AVX512, "compiled, AVX2", marks=pytest.mark.long),
    ],
)
def test_numbas_settings_are_followed(setting, kernel, tmp_path):
    """In a process of its own; with an instruction that numba does without, LLVM would end the process."""
    here = paths.described()["kernel"]
    if "VNNI" in kernel and "VNNI" not in here or "AVX2" in kernel and "AVX" not in here:
        pytest.skip(f"this processor has no {kernel.removeprefix('compiled, ')}")
    changed = dict(each.split("=") for each in setting.split())
    environment = {**os.environ, **changed, "NUMBA_CACHE_DIR": str(tmp_path)}
    code = "from counterpoint.index.paths import described; print(described()['kernel'])"
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == kernel, found.stderr


def test_a_word_of_a_document_that_was_not_asked_for_may_be_damaged():
    """It is only prefetched, and its block may not have been checked yet."""
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    rng, rows = np.random.default_rng(0), 40
    values = rng.integers(-127, 128, (rows, 24), np.int8).view(np.uint8)
    factors = np.full(rows, np.float16(0.5)).view(np.uint16)
    words = np.zeros(rows, np.uint32)
    query = rounded(rng.normal(size=(3, 24)).astype(np.float32))
    tables = np.zeros((1, 16), np.float32), np.zeros((1, 16), np.float32)
    found = []
    for damage in (0, 2**32 - 1):
        words[8:] = damage
        where = np.zeros(1, np.int64), np.array([0]), np.array([8])
        stored = values, factors, words.view(np.uint8).reshape(rows, 4), 8
        found.append(kernels.maxsim(kernels.asked(query), tables, stored, where, kernels.halves, False))
    assert found[0] == found[1]


def test_a_scan_of_very_many_components_does_not_overflow():
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    rows = np.full((1, 70_000), 127, np.int8)
    one, half = np.ones(1, np.float32), np.ones(1, np.float16).view(np.uint16)
    wanted = np.float32(127 * 127 * 70_000)
    assert kernels.scan(rows, one, rows, half, kernels.halves)[0, 0] == wanted
    assert kernels.scan_some(rows, one, rows, half, kernels.halves, np.array([0]))[0] == wanted


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("code", ["least", "most"])
def test_the_largest_codes_and_queries_do_not_overflow(bits, code):
    """Of few bits, four products may be added up in 16 bits."""
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    dim, rows = 184, 11  # rows too short to be looked up
    size = dim * bits // 8
    values = np.full((rows, size), 0 if code == "least" else 255, np.uint8)
    if bits == 8:  # the signed integers themselves
        values = np.full((rows, size), -127 if code == "least" else 127, np.int8).view(np.uint8)
    one, none = np.ones(rows, np.float16).view(np.uint16), np.zeros((1, 16), np.float32)
    query = rounded(np.ones((3, dim), np.float32))
    where = np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, rows)
    stored = values, one, np.zeros((rows, 0), np.uint8), bits
    found = kernels.maxsim(kernels.asked(query), (none, none), stored, where, kernels.halves, False)
    level = (127 if bits == 8 else 2**bits - 1) * (-1 if code == "least" else 1)
    row = np.float32(127 * dim * level) * query.scales[0]
    assert found[0] == row + row + row
