"""Read a table, and as long as it is refused with options that settle it, read it again with these."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.declarations import join_names
from tsformer.data.files import content_of, find_table, source_name
from tsformer.data.frames import panel_from_frame
from tsformer.data.panel import Panel
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, UsageError
from tsformer.findings import Finding
from tsformer.inspection.line import fit_line
from tsformer.inspection.summary import Summary, summary_of
from tsformer.preparation import complete, prepare
from tsformer.settings import Settings
from tsformer.tables.files import RawTable, read_file

READINGS = 12
"""Times that a table is read, at most; each settles one fault."""
UNIONS = ("data.na", "data.sentinel")
"""Options of which several faults may each ask for a part."""
NO_SERIES = "no_numbers"
"""The kind of a fault after which there is nothing to decide."""

Verdict = Literal["ready", "ready with these options", "needs your decision", "no table of series"]


@dataclass(frozen=True)
class Inspection:
    """What was found in a table.

    Attributes:
        path: of the table, as it was given.
        verdict: whether a fit takes it.
        findings: in the order in which they came up; the faults but for the last are settled by `options`.
        options: what settles the faults, by dotted name, without what was given.
        command: the line of a shell that fits a model; None when no line does.
        fault: what is not settled.
        summary: of columns, times and series; None when the file is no table.
    """

    path: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None
    fault: DataError | None = None
    summary: Summary | None = None

    def require_table(self) -> None:
        """Raises DataError when there is no table of series."""
        if self.verdict == "no table of series" and self.fault is not None:
            raise self.fault

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "path": self.path,
            "verdict": self.verdict,
            "command": self.command,
            "options": {name: list(v) if isinstance(v, tuple) else v for name, v in self.options.items()},
            **(Summary() if self.summary is None else self.summary).to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }


def inspect(layers: Sequence[Layer], path: str) -> Inspection:
    """What a table holds, and the line that fits a model to it.

    Args:
        layers: the configuration of a fit with `--data csv`, the flags last; nothing that they give is overridden.
        path: of the table; "-" for stdin.

    Raises:
        DataError: there is no such file. UsageError, PluginError: options that cannot be. ResourceError: a file that
            may not be read.
    """
    *below, flags = layers
    given = _given(flags, resolve(layers))
    options, table = dict(given), _Table(path)
    findings: dict[tuple[str, str], Finding] = {}
    panel = fault = None
    for _ in range(READINGS):
        settings = resolve([*below, _with(flags, options)])
        fault = None
        try:
            found, panel, settings = _read(table, settings)
        except DataError as error:
            fault = error
            read = () if table.raw is None else table.raw.notes
            found = [*read, error.finding or Finding("fault", str(error), "fault")]
        findings.update(((finding.kind, finding.text), finding) for finding in found)
        wanted = _merged(options, given, found)
        if wanted == options:
            break
        options = wanted
    else:
        fault = fault or DataError(
            f"{path}: something new is found whenever it is read; settle the findings one by one"
        )
    chosen = {name: value for name, value in options.items() if given.get(name) != value}
    known = _table_options(settings)
    summary = None if table.raw is None else summary_of(table.raw, panel, known, settings.window)
    about = Inspection(path, "ready", tuple(findings.values()), chosen, None, fault, summary)
    if fault is not None:
        readable = table.raw is not None and found[-1].kind != NO_SERIES
        return replace(about, verdict="needs your decision" if readable else "no table of series")
    transforms = [transform.name for transform in settings.transforms]
    line = fit_line(path, settings.model.name, type(known), options, transforms)
    return replace(about, verdict="ready with these options" if chosen else "ready", command=line)


class _Table:
    """A file that is read again only where an option says how to read it.

    Attributes:
        raw: the table as it was read last; None when it cannot be read.
    """

    def __init__(self, path: str) -> None:
        if path != "-":
            find_table(path)
        self.path = path
        self.raw: RawTable | None = None
        self._content = content_of(path) if path == "-" else None  # stdin comes once
        self._key: object = None

    def read(self, options: TableOptions) -> RawTable:
        key = options.model_dump(
            include={"sep", "decimal", "encoding", "header", "na", "sentinel", "time", "id", "text"}
        )
        if self.raw is None or key != self._key:
            self.raw, self._key = None, key
            written = [*options.time, *options.id, *([options.text] if options.text else [])]
            source: Any = self.path if self._content is None else _opened(self._content)
            self.raw = read_file(source, options, text=written)
        return self.raw


def _opened(content: bytes | str) -> Any:
    return io.BytesIO(content) if isinstance(content, bytes) else io.StringIO(content)


def _read(table: _Table, settings: Settings) -> tuple[list[Finding], Panel, Settings]:
    """All that is found on the way to windows, and the settings with a window."""
    options = _table_options(settings)
    raw = table.read(options)
    panel = panel_from_frame(raw.frame, options, source=source_name(table.path))
    settings = complete(settings, panel)
    prepared = prepare(settings, panel)
    notes = [*raw.notes, *panel.notes, *getattr(prepared, "notes", ())]
    return [note if isinstance(note, Finding) else Finding("note", note) for note in notes], panel, settings


def _table_options(settings: Settings) -> TableOptions:
    config = None if settings.data is None else settings.data.config
    if not isinstance(config, TableOptions):
        raise UsageError(f"inspect looks at tables, not at {settings.data}")
    return config


def _given(flags: Layer, settings: Settings) -> dict[str, Any]:
    """The options that the flags give, by dotted name, as they were understood."""
    configs = {"data": _table_options(settings), "window": settings.window}
    return {
        f"{section}.{name}": getattr(config, name)
        for section, config in configs.items()
        for name in flags.values.get(section, {})
        if name not in ("name", "path")
    }


def _with(flags: Layer, options: Mapping[str, Any]) -> Layer:
    """The flags with further options, by dotted name."""
    values = {section: dict(given) if isinstance(given, Mapping) else given for section, given in flags.values.items()}
    for name, value in options.items():
        section, _, option = name.partition(".")
        texts = isinstance(value, list | tuple) and all(isinstance(part, str) for part in value)
        values.setdefault(section, {})[option] = join_names(value) if texts else value
    return replace(flags, values=values)


def _merged(options: Mapping[str, Any], given: Mapping[str, Any], found: Sequence[Finding]) -> dict[str, Any]:
    """The options with what findings ask for; what the user gave stays."""
    merged = dict(options)
    for finding in found:
        for name, value in finding.options.items():
            if name in UNIONS:
                merged[name] = list(dict.fromkeys([*merged.get(name, ()), *value]))
            elif name not in given:
                merged[name] = value
    return merged
