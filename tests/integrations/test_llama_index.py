"""LlamaIndex gets nodes, and downloads nothing for them."""

import subprocess
import sys

import pytest
from tests.integrations.notes import QUERY

from counterpoint.integrations import LlamaIndexRetriever


def test_nodes_go_into_prompts_with_their_titles(notes):
    found = LlamaIndexRetriever(notes, k=1, where="year = 2019").retrieve(QUERY)
    assert found[0].get_content("llm") == "year: 2019\ntitle: Whales\n\nWhales are mammals of the sea."


@pytest.mark.slow
def test_neither_nltk_nor_tiktoken_is_loaded(folder):
    """They download data when they are used; LlamaIndex needs both packages."""
    code = f"""
import sys
from counterpoint.integrations import LlamaIndexRetriever
assert LlamaIndexRetriever({str(folder)!r}).retrieve({QUERY!r})
loaded = {{"nltk", "tiktoken"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
