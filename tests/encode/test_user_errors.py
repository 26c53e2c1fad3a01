"""Mistakes of users are exceptions, also where `python -O` has removed every assert."""

import subprocess
import sys

import pytest

CASES = {
    "stem": ("w.stem('a', 'stemed')", "'nltk'"),  # ColBERTer's own misspelt default
    "activation": ("e.Linear(5, activation='swish', in_dim=4).setup()", "unknown activation 'swish'"),
    "precision": ("e.EncodeOptions(precision='fp16')", "precision must be"),
    "budget": ("e.EncodeOptions(budget=0)", "budget must be"),
    "source": ("e.load_encoder('/no/such/folder')", "no such folder"),
    "in_dim": ("e.Linear(5).setup()", "in_dim is unknown"),
}
SCRIPT = """
import sys
import counterpoint.encode as e, counterpoint.encode.words as w
from counterpoint.errors import CounterpointError
assert False, "asserts are off"
for code in sys.argv[1:]:
    try:
        eval(code)
    except CounterpointError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def messages():
    codes = [code for code, _ in CASES.values()]
    done = subprocess.run(
        [sys.executable, "-O", "-c", SCRIPT, *codes], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", CASES)
def test_holds_without_asserts(messages, name):
    assert CASES[name][1] in messages[list(CASES).index(name)]
