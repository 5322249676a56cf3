"""Which classes are taken for which: as a picture and as tables. The picture needs the `plot` extra (matplotlib)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.cells import cell_len

from tsformer.evaluation.classes import ClassScore
from tsformer.report.picture import picture

MOST_NAMED = 60  # classes that have their names and counts in a picture
MOST_WITH_ZEROS = 12  # classes whose zeros are written
OWN_FONT = "DejaVu Sans"  # comes with matplotlib
LONGEST = 30  # columns of a terminal that a name may take


def confusion_frame(score: ClassScore) -> pd.DataFrame:
    """How often each class was taken for each: truth in rows, prediction in columns."""
    truth, prediction = (pd.Index(score.names, name=name) for name in ("truth", "prediction"))
    return pd.DataFrame(score.confusion, index=truth, columns=prediction)


def report_frame(score: ClassScore) -> pd.DataFrame:
    """Precision, recall, F1 and support of each class, a row each; NaN where they are undefined."""
    frame = pd.DataFrame(list(score.by_class.values()), index=pd.Index(score.names, name="class"))
    return frame.astype({"precision": float, "recall": float, "f1": float, "support": "int64"})


def plot_confusion(score: ClassScore, file: Path) -> None:
    """Counts in cells whose colour is their share of the true class.

    A name that no installed font can draw is replaced by the class's number, which is its row in `confusion_frame`,
    counted from 1 on. More than `MOST_NAMED` classes have colours and numbers only.

    Args:
        score: of at least one class.
        file: where to; its ending says the format.

    Raises:
        ResourceError: the picture cannot be drawn or written.
    """
    count = len(score.names)
    named = count <= MOST_NAMED
    families, lacking = _fonts("".join(score.names) if named else "")
    names = [_label(name, number, lacking) for number, name in enumerate(score.names, start=1)]
    margin = 0.085 * max(map(cell_len, names)) if named else 0.4  # inches, as all sizes here
    cell = min(0.9, max(0.3, 4.0 / count)) if named else 8.0 / count
    upright = margin > 0.9 * cell  # names that do not fit below a cell
    width, height = cell * count + margin + 1.6, cell * count + (margin if upright else 0.2) + 1.0
    shares = score.confusion / np.maximum(1, score.confusion.sum(axis=1, keepdims=True))
    with picture(file, width, height, **{"font.family": families}) as figure:
        axis: Any = figure.add_subplot()
        ends = (0.5, count + 0.5)  # classes are counted from 1 on
        image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", extent=(*ends, *ends[::-1]))
        if named:
            axis.set_xticks(range(1, count + 1), names, fontsize=9, rotation=90 if upright else 0)
            axis.set_yticks(range(1, count + 1), names, fontsize=9)
            _write_counts(axis, score.confusion, shares, cell)
        note = "\n(numbered: no installed font has all signs of the name)" if lacking else ""
        axis.set_xlabel(f"prediction{note}", fontsize=10)
        axis.set_ylabel("truth", fontsize=10)
        axis.tick_params(length=0)
        bar: Any = figure.colorbar(image, ax=axis, aspect=30, pad=0.02)
        bar.set_label("share of the true class", fontsize=10)
        bar.outline.set_visible(False)
        accuracy = score.overall["accuracy"]
        told = "" if accuracy is None else f", accuracy {accuracy:.4g}"
        figure.suptitle(f"{score.overall['examples']} examples{told}", fontsize=10)


def _write_counts(axis: Any, confusion: np.ndarray, shares: np.ndarray, cell: float) -> None:
    """The counts; zeros, in grey, only where there are few."""
    digits = max(2, len(str(confusion.max())))
    size = min(11.0, 0.85 * 72 * cell / (0.65 * digits))  # points; a digit is 0.65 of its size wide
    for row, column in np.ndindex(confusion.shape):
        count = confusion[row, column]
        if count or len(confusion) <= MOST_WITH_ZEROS:
            colour = "white" if shares[row, column] > 0.5 else "black" if count else "0.7"
            place = {"ha": "center", "va": "center", "in_layout": False}  # the last saves seconds
            axis.text(column + 1, row + 1, str(count), fontsize=size, color=colour, **place)


def _label(name: str, number: int, lacking: set[int]) -> str:
    """A name in one line, cut in the middle if long; or the class's number."""
    words = " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())
    if not words or not lacking.isdisjoint(map(ord, words)):
        return f"class {number}"
    label, kept = words, min(len(words), LONGEST)
    while cell_len(label) > LONGEST:
        kept -= 1
        label = f"{words[: -(-kept // 2)]}…{words[len(words) - kept // 2 :]}"
    return label


def _fonts(text: str) -> tuple[list[str], set[int]]:
    """matplotlib's own font with installed ones that have what it lacks, as for Chinese; and what none of them has."""
    from matplotlib.font_manager import fontManager

    lacking, families = {ord(sign) for sign in text if sign.isprintable()}, []
    # first matplotlib's own, then upright ones; "Last Resort" has a box for every sign
    fonts = [font for font in fontManager.ttflist if not font.name.startswith("Last Resort")]
    for font in sorted(fonts, key=lambda font: (font.name != OWN_FONT, font.style != "normal", font.weight != 400)):
        signs = _signs(font.fname) if lacking else set()
        if font.name == OWN_FONT or not signs.isdisjoint(lacking):
            families.append(font.name)
            lacking -= signs
    return list(dict.fromkeys(families)), lacking


def _signs(file: str) -> set[int]:
    """Codes of the signs that a font has; none where it cannot be read, such as one of bitmaps."""
    from matplotlib.font_manager import get_font

    with contextlib.suppress(OSError, RuntimeError):
        return set(get_font(file).get_charmap())
    return set()
