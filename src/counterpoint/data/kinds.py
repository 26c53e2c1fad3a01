"""Kinds of files, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from counterpoint.data.packed import ending, is_packed

__all__ = ["CODE", "kind_of"]

CODE = frozenset(
    ".py .pyi .pyx .js .mjs .cjs .jsx .ts .tsx .vue .svelte .go .rs .java .kt .kts .scala .groovy "
    ".gradle .c .h .cc .cpp .cxx .hpp .hh .hxx .cu .cs .fs .vb .m .mm .swift .rb .php .pl .pm .lua .r "
    ".jl .dart .ex .exs .erl .hs .ml .mli .clj .cljs .lisp .el .scm .vim .sh .bash .zsh .fish .ps1 .bat "
    ".cmd .sql .proto .graphql .css .scss .sass .less .toml .yaml .yml .ini .cfg .conf .properties .xml "
    ".xsd .cmake .mk .tf .nix .zig .nim .v .sv .vhd .asm .s .f .f90 .for .pas .tcl .awk .sed .diff "
    ".patch .tex .bib .sty".split()
)
TEXT = (".txt", ".text", ".log", ".org", ".adoc", ".asciidoc", ".srt", ".vtt")
NAMES = re.compile(  # text files whose names have no ending, or one of their own
    r"(readme|licen[cs]e|copying|notice|authors|contributors|contributing|maintainers|changelog|changes|history|"
    r"news|todo|install|thanks|makefile|dockerfile|containerfile|jenkinsfile|vagrantfile|gemfile|rakefile|"
    r"procfile|justfile|codeowners)([-_.][\w.-]*)?",
    re.IGNORECASE,
)
KINDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(CODE, "code"),
        **dict.fromkeys(TEXT, "text"),
        **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "markdown"),
        ".rst": "rst",
        **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
        **dict.fromkeys((".csv", ".tsv", ".json", ".jsonl", ".ndjson"), "rows"),
        ".ipynb": "notebook",
        ".pdf": "pdf",
        ".docx": "docx",
    }
)
UNPACKED_ONLY = ("pdf", "docx")  # their readers seek in the file


def kind_of(path: Path) -> str | None:
    """The kind of a file; None if it is not supported."""
    kind = KINDS.get(ending(path))
    if kind is None and NAMES.fullmatch(path.stem if is_packed(path) else path.name):
        return "code"
    return None if kind in UNPACKED_ONLY and is_packed(path) else kind
