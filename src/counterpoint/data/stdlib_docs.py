"""The documentation of the running Python's standard library: real text on every machine."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import os
import re
import sys
import sysconfig
import textwrap
import tokenize
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import cast

from counterpoint.data.collection import Source
from counterpoint.data.passages import located_passages
from counterpoint.data.reader import Located, Reader
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["StandardLibrary"]

LEFT_OUT = frozenset(
    "test tests idlelib lib2to3 ensurepip turtledemo pydoc_data site-packages antigravity this "
    "__pycache__".split()
)
# Written at least partly in C, so without source to read. All are loaded by any Python that runs this
# package, or only define names on import.
COMPILED = tuple(
    "builtins array bisect collections datetime functools gc heapq io itertools math operator os random re "
    "select socket struct sys time zlib".split()
)
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
SIGNATURE_CHARACTERS = 100  # in a title; the 25 arguments of subprocess.Popen would hide the name


@dataclass(frozen=True)
class StandardLibrary(Source):
    """Docstrings by module, class and function, from source files that are parsed and never imported.

    The id is the dotted name (`json.JSONDecoder.raw_decode`, `len`, `str.split`); the title is the name and
    the signature. A docstring longer than a passage is cut into `<id>#1`, `<id>#2`, ….

    Attributes:
        only: one top-level module (`json`), or None for all.
        passage_words: length of a passage; None leaves docstrings whole.
    """

    only: str | None
    passage_words: int | None

    @property
    def name(self) -> str:
        """`stdlib`, or `stdlib-<module>`."""
        return f"stdlib-{self.only}" if self.only else "stdlib"

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield the modules in the order of their files, then those in C in the order of `COMPILED`."""
        seen: set[str] = set()  # a few thousand; branches of an `if`, a property and its setter share one
        for found in chain(self._from_source(reader), self._compiled()):
            if found.document.id not in seen:
                seen.add(found.document.id)
                yield from located_passages(found, self.passage_words)

    def _from_source(self, reader: Reader) -> Iterator[Located]:
        library = _Library(Path(sysconfig.get_paths()["stdlib"]))
        modules = {name: path for name, path in library.modules() if self.only in (None, name.split(".")[0])}
        if not modules and self.only not in COMPILED:
            what = f"no public module {self.only!r}" if self.only else "no sources of the standard library"
            raise DataError(f"{what} here; this Python is {sys.version.split()[0]}", path=library.root)
        for name, path in modules.items():
            for document in library.documents(name, path):
                file, line = document.metadata["file"], document.metadata["line"]
                yield Located(document, library.root / str(file), cast(int, line))
            reader.report.read(".py")

    def _compiled(self) -> Iterator[Located]:
        for name in COMPILED:
            if self.only in (None, name):
                for document in _inspected(importlib.import_module(name)):
                    yield Located(document, name)


class _Library:
    """The source files of the standard library, with each definition once, under its public name."""

    def __init__(self, root: Path):
        self.root = root
        self.published: set[tuple[Path, str]] = set()

    def modules(self) -> Iterator[tuple[str, Path]]:
        """Yield name and file of each public module in the order of paths, a package before its contents."""
        for path in sorted(self.root.iterdir()):
            if path.stem in LEFT_OUT or path.stem.startswith("_") or path.stem not in sys.stdlib_module_names:
                continue
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                parts = file.relative_to(self.root).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                if file.suffix == ".py" and "._" not in name and LEFT_OUT.isdisjoint(parts):
                    yield name, file

    def documents(self, module: str, path: Path) -> Iterator[Document]:
        """A module's docstring, the exported definitions of its private or inner modules, and its own."""
        # One of three modules is `os.path`, depending on the system.
        name = "os.path" if module in ("genericpath", os.path.__name__) else module
        tree = _parsed(path)
        if text := ast.get_docstring(tree):
            metadata = {"file": self._relative(path), "line": 1, "kind": "module"}
            yield Document(name, text, name, metadata=metadata)
        exported = _exported(tree)
        for node in _top_level(tree.body):
            if isinstance(node, ast.ImportFrom) and (file := self._part(module, path, node)):
                part = _parsed(file)
                names = {alias.name for alias in node.names}
                imported = _exported(part) if "*" in names else names
                both = [found for found in (imported, exported) if found is not None]
                yield from self._definitions(part, file, name, set.intersection(*both) if both else None)
        yield from self._definitions(tree, path, name, None)

    def _part(self, module: str, path: Path, node: ast.ImportFrom) -> Path | None:
        below = node.level == 1 and path.name == "__init__.py"
        target = f"{module}.{node.module}" if below else node.module or ""
        if node.level > 1 or not (target.startswith((module + ".", "_"))):
            return None
        file = self.root.joinpath(*target.split(".")).with_suffix(".py")
        return file if file.is_file() else None

    def _definitions(
        self, tree: ast.Module, path: Path, prefix: str, names: set[str] | None
    ) -> Iterator[Document]:
        """The public classes and functions of a file, or the named ones, unless published before."""
        for node in _top_level(tree.body):
            if isinstance(node, DEFINITIONS) and (path, node.name) not in self.published:
                if names is None or node.name in names:
                    self.published.add((path, node.name))
                    yield from _described_node(node, prefix, self._relative(path))

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _parsed(path: Path) -> ast.Module:
    with tokenize.open(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated syntax in the library's own code
        return ast.parse(file.read())


def _exported(tree: ast.Module) -> set[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(to, "id", "") == "__all__" for to in node.targets):
            try:
                return set(ast.literal_eval(node.value))
            except ValueError:  # computed at run time
                return None
    return None


def _top_level(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield statements in order, and those inside `if` and `try`, which depend on the platform."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.ExceptHandler)):
            yield from _top_level(list(ast.iter_child_nodes(node)))


def _described_node(node: Definition, prefix: str, file: str, kind: str = "function") -> Iterator[Document]:
    """A definition and, for a class, the definitions in it, if they have docstrings."""
    if node.name.startswith("_"):
        return
    name, text = f"{prefix}.{node.name}", ast.get_docstring(node)
    is_class = isinstance(node, ast.ClassDef)
    if text:
        metadata = {"file": file, "line": node.lineno, "kind": "class" if is_class else kind}
        yield Document(name, text, name + _signature(node), metadata=metadata)
    if is_class:
        for child in node.body:
            if isinstance(child, DEFINITIONS):
                yield from _described_node(child, name, file, "method")


def _signature(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        inner = (child for child in node.body if isinstance(child, ast.FunctionDef))
        return next((_signature(child) for child in inner if child.name == "__init__"), "")
    return _shortened(ast.unparse(node.args))


def _inspected(module: ModuleType) -> Iterator[Document]:
    """Functions, classes and their own public methods with docstrings, by name.

    Those written in Python were already read from their source, and are dropped as duplicates.
    """
    prefix = "" if module is builtins else f"{module.__name__}."
    listed = getattr(module, "__all__", None)
    for name in sorted(listed or vars(module)):
        value = getattr(module, name)
        own = listed is not None or getattr(value, "__module__", None) in (None, module.__name__)
        if name.startswith("_") or not own or not (inspect.isbuiltin(value) or inspect.isclass(value)):
            continue
        yield from _described(value, prefix + name, "class" if inspect.isclass(value) else "function")
        if inspect.isclass(value):
            for method in sorted(name for name in vars(value) if not name.startswith("_")):
                if callable(getattr(value, method)):
                    yield from _described(getattr(value, method), f"{prefix}{name}.{method}", "method")


def _described(value: object, name: str, kind: str) -> Iterator[Document]:
    if not value.__doc__:
        return
    try:
        found = inspect.signature(cast(Callable, value))
    except (TypeError, ValueError):  # some C functions do not give their arguments
        signature = ""
    else:
        signature = _shortened(str(found.replace(return_annotation=found.empty))[1:-1])
    yield Document(name, inspect.cleandoc(value.__doc__), name + signature, metadata={"kind": kind})


def _shortened(arguments: str) -> str:
    for first in ("self", "cls", "$self"):
        arguments = re.sub(rf"^{re.escape(first)}(, /)?(, |$)", "", arguments)
    return f"({textwrap.shorten(arguments, SIGNATURE_CHARACTERS, placeholder=' …')})"
