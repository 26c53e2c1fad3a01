import sys

import pytest

from counterpoint.data import open_collection
from counterpoint.errors import DataError


@pytest.fixture(scope="module")
def library():
    return list(open_collection("stdlib:", passage_words=None).documents())


def test_size_and_order(library):
    assert 4000 < len(library) < 9000
    ids = [document.id for document in library]
    assert ids.index("abc") < ids.index("argparse") < ids.index("json") < ids.index("len")


@pytest.mark.parametrize(
    ("id_", "kind"),
    [
        ("json", "module"),
        ("json.JSONDecoder", "class"),
        ("json.JSONDecoder.raw_decode", "method"),
        ("json.loads", "function"),
        ("collections.abc.Mapping", "class"),
        ("concurrent.futures.Future.result", "method"),
        ("unittest.TestCase.assertRaises", "method"),
        ("os.path.join", "function"),
        ("os.path.exists", "function"),
        ("os.listdir", "function"),
        ("collections.deque.append", "method"),
        ("itertools.chain", "class"),
        ("math.sqrt", "function"),
        ("len", "function"),
        ("str.split", "method"),
        ("ValueError", "class"),
    ],
)
def test_things_users_ask_about_have_their_public_names(library, id_, kind):
    (found,) = [document for document in library if document.id == id_]
    assert found.metadata["kind"] == kind
    assert found.title.startswith(id_)
    assert found.text


def test_private_and_test_modules_are_left_out(library):
    for document in library:
        parts = document.id.split(".")
        assert not any(part.startswith("_") for part in parts), document.id
        assert not {"test", "idlelib", "lib2to3", "ensurepip", "turtledemo"} & set(parts[:-1]), document.id


def test_a_function_of_one_module():
    collection = open_collection("stdlib:json")
    documents = {document.id: document for document in collection.documents()}
    found = documents["json.JSONDecoder.raw_decode"]
    assert collection.name == "stdlib-json"
    assert all(id_.startswith("json") for id_ in documents)
    assert found.title == "json.JSONDecoder.raw_decode(s, idx=0)"
    assert found.metadata["file"] == "json/decoder.py"
    assert isinstance(found.metadata["line"], int)
    assert found.text.startswith("Decode")  # cleaned of its indentation
    assert documents["json.loads#1"].parent == "json.loads"
    assert " …)" in documents["json.loads#1"].title


def test_documents_are_the_same_each_time():
    collection = open_collection("stdlib:math")
    assert list(collection.documents()) == list(collection.documents())


def test_nothing_is_imported():
    assert "poplib" not in sys.modules
    assert next(open_collection("stdlib:poplib").documents()).id.startswith("poplib")
    assert "poplib" not in sys.modules


def test_unknown_module():
    with pytest.raises(DataError, match="no public module 'nosuch' here"):
        list(open_collection("stdlib:nosuch").documents())
