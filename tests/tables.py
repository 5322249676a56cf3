"""Tables as text, and what is made of them: what the tests of reading share."""

import io

from tsformer.data.frames import panel_from_frame, read_table

DAYS = [f"2024-01-0{i}" for i in range(1, 8)]


def table(content, **options):
    return read_table(io.StringIO(content), **options)


def panel(content, **options):
    """A panel from CSV text; options of `read_table` and of `panel_from_frame` together."""
    reading = {name: options.pop(name) for name in ("sep", "decimal") if name in options}
    written = [options[name] for name in ("time", "id") if name in options]
    return panel_from_frame(table(content, text=written, **reading), **options)


def csv(times, name="date", values=None):
    cells = values or [str(i) for i in range(len(times))]
    return f"{name},y\n" + "".join(f"{time},{cell}\n" for time, cell in zip(times, cells, strict=True))


def message(error):
    text = str(error.value)
    assert "\n" not in text
    return text
