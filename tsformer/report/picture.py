"""What all pictures share: matplotlib without a display, without warnings, and files that are there whole."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsformer.atomic import write_atomically
from tsformer.errors import ResourceError, in_words, out_of_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def picture(file: Path, width: float, height: float, **settings: Any) -> Iterator[Figure]:
    """A figure to draw on, written when all is drawn, in the format that the file's ending says.

    Args:
        file: where to; folders are made.
        width, height: in inches.
        settings: of matplotlib, such as `{"font.family": [...]}`.

    Raises:
        ResourceError: the picture cannot be drawn or written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = io.BytesIO()
    # A dollar in a name is no formula. Glyphs that the font lacks are drawn as boxes, without a warning.
    plain: Any = {"text.parse_math": False, "text.usetex": False, **settings}
    try:
        with warnings.catch_warnings(), matplotlib.rc_context(plain):
            warnings.simplefilter("ignore")
            figure = Figure(figsize=(width, height), layout="constrained")
            FigureCanvasAgg(figure)  # no display, and no global state of pyplot
            yield figure
            figure.savefig(drawn, format=file.suffix[1:].lower(), dpi=120)
    except Exception as error:
        if out_of_memory(error):
            raise
        raise ResourceError(f"cannot draw the picture '{file}': {in_words(error)}") from None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, drawn.getvalue())
    except OSError as error:
        raise ResourceError(f"cannot write the picture '{file}': {error.strerror or error}") from None
