"""What was found in a table, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tsformer.errors import in_one_line
from tsformer.findings import Finding, Level
from tsformer.inspection.search import Inspection
from tsformer.inspection.summary import Column, Summary

MOST_COLUMNS = 20  # that have a line of their own
MOST_FINDINGS = 30  # of one kind of level
LONGEST = 28  # characters of a name or a cell
_HEADINGS: dict[Level, str] = {"fault": "to settle", "doubt": "doubtful", "note": "done in reading"}


def lines(found: Inspection) -> list[str]:
    """The report; its last line is the one to run, where there is one."""
    summary, source = found.summary or Summary(), "stdin" if found.path == "-" else found.path
    made = [f"{name:<11}{text}" for name, text in _outline(found, summary)]
    if summary.columns:
        made += ["", *_columns(summary.columns)]
    for level, heading in _HEADINGS.items():
        mine = [finding for finding in found.findings if finding.level == level]
        if mine:
            made += [
                "",
                f"{heading}:",
                *(line for finding in mine[:MOST_FINDINGS] for line in _finding(finding, source)),
            ]
            made += [f"  ... and {len(mine) - MOST_FINDINGS} more"] if len(mine) > MOST_FINDINGS else []
    made += ["", f"verdict: {_verdict(found)}"]
    made = [in_one_line(line) for line in made]
    return made if found.command is None else [*made, "", found.command]


def _outline(found: Inspection, summary: Summary) -> Iterator[tuple[str, str]]:
    size = "" if summary.rows is None else f": {summary.rows:,} rows, {len(summary.columns):,} columns"
    yield "file", found.path + size
    if summary.form:
        yield "written", ", ".join(f"{name} {_visible(value)}" for name, value in summary.form.items())
    if summary.time:
        yield "time", _time(summary.time)
        steps = summary.time.get("steps") or ()
        yield "frequency", f"{summary.time['frequency'] or 'unknown'}{_histogram(steps)}"
        yield "span", f"{summary.time['first']} to {summary.time['last']}"
    if summary.series:
        yield "series", _series(summary.series)
    if summary.window:
        yield "window", ", ".join(f"{name} {steps}" for name, steps in summary.window.items())


def _visible(text: str) -> str:
    return {"\t": "tab", "\\s+": "blanks", " ": "blank"}.get(text, text)


def _time(time: Mapping[str, Any]) -> str:
    if time["name"] is None:
        return "no column of times: rows in the order of the file"
    written = f", written {time['format']}" if time["format"] else ""
    zone = f", zone {time['zone']}" if time["zone"] else ""
    return f"{time['name']}{written}{zone}"


def _histogram(steps: Any) -> str:
    return f"; steps {', '.join(f'{step} ({count:,}x)' for step, count in steps)}" if len(steps) > 1 else ""


def _series(series: Mapping[str, Any]) -> str:
    rows = series["rows"]
    if series["count"] == 1:
        return f"1 of {rows['longest']:,} rows"
    told = f" by {', '.join(series['id'])}" if series["id"] else ""
    more = ", ..." if series["count"] > len(series["ids"]) else ""
    return (
        f"{series['count']:,}{told} ({', '.join(series['ids'])}{more}) of {rows['shortest']:,} to "
        f"{rows['longest']:,} rows, median {rows['median']:,}"
    )


def _columns(columns: tuple[Column, ...]) -> Iterator[str]:
    shown: list[tuple[str, ...]] = [("column", "is", "missing", "least", "greatest", "first cell")]
    for column in columns[:MOST_COLUMNS]:
        numbers = [f"{end:.6g}" if end is not None else "" for end in (column.least, column.greatest)]
        shown.append((_cut(column.name), column.role, f"{column.missing or ''}", *numbers, _cut(column.example or "")))
    widths = [max(len(row[i]) for row in shown) for i in range(6)]
    for row in shown:
        cells = [
            text.rjust(w) if 2 <= i <= 4 else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    if len(columns) > MOST_COLUMNS:
        rest = [column.role for column in columns[MOST_COLUMNS:]]
        yield f"... and {len(rest):,} more: " + ", ".join(f"{rest.count(r):,} {r}" for r in dict.fromkeys(rest))


def _cut(text: str) -> str:
    line = in_one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _finding(finding: Finding, source: str) -> Iterator[str]:
    yield f"  {finding.text.removeprefix(f'{source}: ')}"
    if finding.level == "note":
        return
    about = {"column": finding.column, "first in": finding.row, "count": finding.count, "example": finding.example}
    told = [f"{name} {value}" for name, value in about.items() if value is not None and str(value) not in finding.text]
    if finding.remedy and finding.remedy not in finding.text:
        told.append(f"-> {finding.remedy}")
    if told:
        yield f"    {', '.join(told)}"


def _verdict(found: Inspection) -> str:
    if found.verdict == "ready with these options":
        return f"{found.verdict}: " + ", ".join(f"{name} = {_shown(v)}" for name, v in found.options.items())
    return found.verdict


def _shown(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
