"""What was found in a table: what was done about it and is said, what is doubtful, and what has to be settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["note", "doubt", "fault"]


@dataclass(frozen=True)
class Finding:
    """One thing that the user should hear of; as text it is one line.

    Attributes:
        kind: a word for programs: "sorted", "thousands", "marker", "sentinel", "duplicates", "gaps", ...
        text: what was done or what is wrong, and where, in one line.
        level: "note" was unambiguous and is done; "doubt" is suspected, and nothing was done; "fault" must be settled
            before the table can be taken.
        column: the column that it is about.
        row: the first place, as `place` names it: "line 17".
        count: cells, rows or series that are like it.
        example: one of them, as it is written.
        remedy: what to do.
        options: what settles it on the command line, `{"data.missing": "mask"}`; empty when only the user can.
    """

    kind: str
    text: str
    level: Level = "note"
    column: str | None = None
    row: str | None = None
    count: int | None = None
    example: str | None = None
    remedy: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "options": dict(self.options)}
