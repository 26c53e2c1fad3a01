"""Records of files with their place, so that every error names file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from sys import float_info
from typing import Any

from counterpoint.data import ReadPolicy
from counterpoint.data.reader import open_binary, strict_reader
from counterpoint.data.records import DECODER
from counterpoint.errors import DataError, MissingExtraError

__all__ = ["Row", "rows", "shards"]

ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")


@dataclass(frozen=True, slots=True)
class Row:
    """One record and its place. Its checks return the value, or raise a `DataError` that names the place.

    Attributes:
        value: JSON, or a table's row as a mapping.
        path: of the file.
        line: from 1. In a table, the number of the row.
    """

    value: Any
    path: Path
    line: int

    def fault(self, message: str) -> DataError:
        """An error about this record, for the caller to raise."""
        return DataError(message, path=self.path, line=self.line)

    def take(self, *keys: str) -> Any:
        """The value of the first of these keys that the record, an object, has."""
        if not isinstance(self.value, Mapping):
            raise self.fault(f"expected an object, found {type(self.value).__name__}")
        found = next((key for key in keys if key in self.value), None)
        if found is None:
            raise self.fault(f"no {' or '.join(map(repr, keys))} among the keys {', '.join(self.value)}")
        return self.value[found]

    def text(self, value: object) -> str:
        """Check that the value is a string that can be stored."""
        if not isinstance(value, str):
            raise self.fault(f"expected a text, found {json.dumps(value, default=str)[:60]}")
        return strict_reader(ReadPolicy()).sound(value, self.path, self.line)

    def id(self, value: object) -> str:
        """Check that the value is an id: a string that is not blank, or a whole number, which becomes one."""
        if type(value) is int:  # not isinstance, because bool is a subclass of int
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.fault(
                f"an id must be a string or a whole number, found {json.dumps(value, default=str)[:60]}"
            )
        return value

    def number(self, value: object) -> float:
        """Check that the value is a finite number."""
        most = float_info.max
        if isinstance(value, bool) or not isinstance(value, int | float) or not -most <= value <= most:
            raise self.fault(f"a score must be a finite number, found {json.dumps(value, default=str)[:60]}")
        return float(value)

    def items(self, value: object) -> list[Any]:
        """Check that the value is a list, or its JSON as in some tables."""
        if isinstance(value, str) and value.startswith("["):
            try:
                value = DECODER.decode(value)
            except (ValueError, RecursionError) as error:
                raise self.fault(f"not valid JSON: {error}") from error
        if not isinstance(value, list):
            raise self.fault(f"expected a list, found {json.dumps(value, default=str)[:60]}")
        return value


def rows(path: Path, policy: ReadPolicy | None = None) -> Iterator[Row]:
    """Yield the records of a `.jsonl[.gz]` or `.parquet` file, or the items of a `.json[.gz]` file's list.

    The list of a `.json` file is read whole, and its items are counted as lines.

    Raises:
        DataError: the file cannot be read in this format.
        MissingExtraError: pyarrow is needed and not installed.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        yield from _parquet(path)
    elif name.endswith(".json"):
        for number, value in enumerate(_json_list(path), 1):
            yield Row(value, path, number)
    else:
        for number, line in strict_reader(policy or ReadPolicy()).lines(path):
            if line and not line.isspace():
                try:
                    yield Row(DECODER.decode(line), path, number)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"not valid JSON: {error}", path=path, line=number) from error


def shards(folder: Path, stem: str) -> list[Path]:
    """The files of one part of a data set in the hub's layout, sorted.

    These are files such as `train.jsonl` or `train-00000-of-00002.parquet` in the folder or in `data`, and
    all files in `train`.
    """
    places = [*folder.glob("*"), *folder.glob("data/*")]
    found = [path for path in places if path.name.split(".")[0].split("-")[0] == stem]
    found += [*(folder / stem).glob("*")]
    return sorted(path for path in found if path.is_file() and path.name.endswith(ENDINGS))


def _json_list(path: Path) -> list[Any]:
    with open_binary(path) as file:
        try:
            found = json.load(file)
        except json.JSONDecodeError as error:
            raise DataError(f"not valid JSON: {error.msg}", path=path, line=error.lineno) from error
        except UnicodeDecodeError as error:
            raise DataError(f"not UTF-8 ({error}); convert the file", path=path) from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"not valid JSON: {error}", path=path) from error
    if not isinstance(found, list):
        raise DataError(f"expected a list of records, found {type(found).__name__}", path=path)
    return found


def _parquet(path: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("reading Parquet", package="pyarrow", extra="train") from error
    try:
        with ParquetFile(path) as table:
            values = (value for batch in table.iter_batches() for value in batch.to_pylist())
            for number, value in enumerate(values, 1):
                yield Row(value, path, number)
    except (ArrowException, OSError) as error:
        raise DataError(f"cannot be read as Parquet ({error}); copy it again", path=path) from error
