"""Tables as text, and what is made of them: what the tests of reading share."""

import io

from tsformer.data.frames import load_panel, panel_from_frame, read_file
from tsformer.data.table_options import TableOptions

DAYS = [f"2024-01-0{i}" for i in range(1, 8)]


def table(content, *, text=(), **options):
    """CSV text as a table of cells; options of reading."""
    return read_file(io.StringIO(content), TableOptions(**options), text=text).frame


def panel(content, **options):
    """A panel from CSV text, by table options."""
    return load_panel(io.StringIO(content), TableOptions(**options))


def framed(frame, **options):
    """A panel from a DataFrame, by table options."""
    return panel_from_frame(frame, TableOptions(**options))


def csv(times, name="date", values=None):
    cells = values or [str(i) for i in range(len(times))]
    return f"{name},y\n" + "".join(f"{time},{cell}\n" for time, cell in zip(times, cells, strict=True))


def message(error):
    text = str(error.value)
    assert "\n" not in text
    return text


def said(panel):
    """The notes of a panel, as the user reads them."""
    return tuple(str(note) for note in panel.notes)
