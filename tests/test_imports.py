"""No two files import each other, directly or round a circle: not for a type, and not within a function.

A name that a package's `__init__` only passes on counts as one of the file that defines it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
EXCEPTIONS = {
    # A model tells what exports it and what loads it elsewhere, so that building an index asks the model and
    # needs no torch. Both are imported when they are called.
    ("counterpoint.model", "counterpoint.onnx_export.write"),
    ("counterpoint.model", "counterpoint.loading"),
}


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in SRC.rglob("*.py")}


def imported(name: str) -> Iterator[tuple[str, str, str]]:
    """Everything that a file imports of us: from where, what, and under which name."""
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: imports say the whole name"
            for alias in node.names:
                yield node.module or "", alias.name, alias.asname or alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, "", alias.name


def passed_on() -> dict[tuple[str, str], tuple[str, str]]:
    """By package and name, from where a package has it."""
    packages = [name for name, path in FILES.items() if path.name == "__init__.py"]
    return {
        (package, known): (source, name)
        for package in packages
        for source, name, known in imported(package)
        if source in FILES and source != package
    }


def arrows() -> dict[str, set[str]]:
    homes = passed_on()
    found: dict[str, set[str]] = {name: set() for name in FILES}
    for name in FILES:
        for source, what, _ in imported(name):
            while (source, what) in homes:
                source, what = homes[source, what]
            whole = f"{source}.{what}"
            target = whole if whole in FILES else source
            if target in FILES and target != name:
                found[name].add(target)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """What stays when files that import nothing, or that nothing imports, are taken away again and again."""
    left = {name: set(targets) for name, targets in graph.items()}
    while True:
        wanted = set().union(*left.values()) if left else set()
        gone = {name for name, targets in left.items() if not targets or name not in wanted}
        if not gone:
            return [[name, *sorted(targets)] for name, targets in sorted(left.items())]
        left = {name: targets - gone for name, targets in left.items() if name not in gone}


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"], ["c", "b"]]


def test_no_files_import_each_other():
    graph = arrows()
    assert sum(map(len, graph.values())) > 1000, "arrows were not read; the test tests nothing"
    for source, target in EXCEPTIONS:
        graph[source].remove(target)  # an exception that is no longer needed goes
    assert circles(graph) == []


def test_each_exception_is_needed():
    for kept in EXCEPTIONS:
        graph = arrows()
        for source, target in EXCEPTIONS - {kept}:
            graph[source].remove(target)
        assert circles(graph), f"{kept} closes no circle"


def names_of(name: str) -> tuple[set[str], set[str]]:
    """What a file defines, and what its `__all__` has."""
    defined: set[str] = set()
    listed: set[str] = set()
    for node in ast.parse(FILES[name].read_text()).body:
        match node:
            case ast.FunctionDef(name=known) | ast.ClassDef(name=known):
                defined.add(known)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                listed = set(ast.literal_eval(value))
            case ast.Assign(targets=[ast.Name(id=known)]) | ast.AnnAssign(target=ast.Name(id=known)):
                defined.add(known)
    return defined, listed


def test_what_another_file_imports_is_in_all():
    names = {name: names_of(name) for name in FILES}
    used = {(source, what) for name in FILES for source, what, _ in imported(name) if source in FILES}
    missing = {(source, what) for source, what in used if what in names[source][0] - names[source][1]}
    assert len(used) > 1000, "imports were not read; the test tests nothing"
    assert not missing
