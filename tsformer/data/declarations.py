"""How data plugins declare a file, names of columns, and the way in which a file of texts is written."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Annotated

import pydantic

from tsformer.plugin import Config, Field


def split_names(names: object) -> object:
    """Names separated by commas, in one text or in several; one that contains a comma stands in double quotes."""
    parts = [names] if isinstance(names, str) else () if names is None else names
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return names
    if not all(part.strip(", ") for part in parts):
        raise ValueError("the name of a column is empty")
    try:
        rows = csv.reader(parts, skipinitialspace=True, strict=True)
        return tuple(name.strip() for row in rows for name in row if name.strip())
    except csv.Error as error:
        raise ValueError(f"names of columns cannot be told apart: {error}") from None


def join_names(names: Sequence[str]) -> str:
    """The inverse of `split_names`: names in one text, those with a comma or a quote in double quotes."""
    quoted = ('"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name for name in names)
    return ",".join(quoted)


def full_path(path: str | None) -> str | None:
    """A file or folder that is here is remembered by its full path, so that its run can be used from any folder."""
    return os.path.realpath(path) if path is not None and path != "-" and os.path.exists(path) else path


FilePath = Annotated[str, pydantic.AfterValidator(full_path)]
OptionalFilePath = Annotated[str | None, pydantic.AfterValidator(full_path)]
Names = Annotated[tuple[str, ...], pydantic.BeforeValidator(split_names)]


class TextFileOptions(Config):
    """Where texts are, and how the file is written."""

    path: FilePath = Field(
        ...,
        description="the file (.csv, .tsv, .txt, each also .gz), '-' for stdin, or a shipped data set such as reviews",
        flag="--path",
        min_length=1,
    )
    sep: str | None = Field(
        None, description="what separates columns: , ; | or tab (default: tab in .tsv and .txt, else ,)", flag="--sep"
    )
    header: bool | None = Field(
        None, description="whether the first line holds names (default: yes, unless columns are given by number)"
    )
    quoting: bool | None = Field(
        None,
        description='whether " encloses cells (default: yes; but where columns are separated by tabs and quotes do not '
        "balance, they are text)",
    )
    encoding: str = Field("utf-8-sig", description="encoding of the file, for example gb18030", flag="--encoding")
