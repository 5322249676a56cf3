"""Pictures: what they say, what may stand in them, and that a failure leaves none behind."""

import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from tsformer import preparation
from tsformer.errors import ResourceError, UsageError
from tsformer.forecast import Forecast
from tsformer.plugin import Problem
from tsformer.report import plots

HORIZON = 4


def waves(length=40, targets=1):
    return np.sin(np.arange(length) / 4)[:, None] + np.arange(targets)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    figures = []
    save = Figure.savefig

    def record(figure, *args, **options):
        figures.append(figure)
        save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", record)
    return figures


def picture(panel, file, model="net"):
    """Draw a forecast that repeats the last rows."""
    rows = [panel.rows(series) for series in range(len(panel.ids))]
    times = [pd.date_range(panel.times[each.stop - 1], periods=HORIZON + 1, freq="D")[1:] for each in rows]
    values = np.stack([panel.values[each][-HORIZON:] for each in rows])
    plots.plot_forecast(panel, Forecast(values, times, panel), file, model)


def titles(figure):
    return [axis.get_title(loc="left") for axis in figure.axes]


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("ending", plots.FORMATS)
def test_every_format_is_written(make_panel, tmp_path, ending):
    picture(make_panel([waves()]), tmp_path / f"new folder/f{ending.upper()}")
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".jpg": b"\xff\xd8"}
    assert (tmp_path / f"new folder/f{ending.upper()}").read_bytes().startswith(starts[ending])


def test_another_ending_is_refused():
    with pytest.raises(UsageError, match="must end in"):
        plots.require(Path("f.txt"))


@pytest.mark.parametrize(
    ("series", "targets", "expected"),
    [
        (1, 1, "net: forecast of 4 steps"),
        (3, 2, "net: forecast of 4 steps"),
        (304, 1, "net: forecast of 4 steps, 6 of 304 series"),
        (1, 7, "net: forecast of 4 steps, 6 of 7 targets"),
        (4, 2, "net: forecast of 4 steps, 6 of 8 lines (4 series, 2 targets)"),
    ],
)
def test_the_title_names_the_model_and_says_what_is_left_out(make_panel, tmp_path, drawn, series, targets, expected):
    picture(make_panel([waves(targets=targets)] * series), tmp_path / "f.png")
    assert drawn[0].get_suptitle() == expected
    assert len(drawn[0].axes) == min(6, series * targets)


def test_series_are_named_when_the_table_has_an_id(make_panel, tmp_path, drawn):
    picture(make_panel([waves(targets=2)] * 2, names=["a", "b"]), tmp_path / "f.png")
    picture(make_panel([waves(targets=2)], names=["a", "b"]), tmp_path / "f.png")
    assert list(map(titles, drawn)) == [["s0 a", "s0 b", "s1 a", "s1 b"], ["a", "b"]]


def test_the_picture_of_the_test_part(make_panel, tmp_path, drawn, monkeypatch):
    panel = make_panel([waves(targets=4)] * 2)
    monkeypatch.setattr(preparation, "origin_rows", lambda prepared: np.array([20, 30, 70, 76]))
    prepared = SimpleNamespace(
        problem=SimpleNamespace(lookback=8, horizon=HORIZON),
        panel=panel,
        test=SimpleNamespace(series=np.array([0, 0, 1, 1])),
    )
    fitted = SimpleNamespace(settings=SimpleNamespace(model=SimpleNamespace(name="net")), problem=Problem())
    result = SimpleNamespace(prepared=prepared, fitted=fitted, forecast=np.zeros((4, HORIZON, 4)))
    plots.plot_test(result, tmp_path / "f.png")
    assert drawn[0].get_suptitle() == "net: the last 4 steps of the test part, 6 of 8 lines (2 series, 4 targets)"
    assert titles(drawn[0]) == ["s0 y0", "s0 y1", "s0 y2", "s0 y3", "s1 y0", "s1 y1"]
    for axis, origin in ((0, 30), (4, 76)):
        history, truth, forecast = drawn[0].axes[axis].lines[:3]
        assert (len(history.get_xdata()), len(truth.get_xdata()), len(forecast.get_xdata())) == (24, 5, 5)
        assert truth.get_ydata()[1:] == pytest.approx(panel.values[origin : origin + 4, 0])


def test_a_line_is_interrupted_where_values_or_time_are_missing(make_panel, tmp_path, drawn):
    values = waves()
    values[3] = values[5] = np.nan
    panel = make_panel([values], masked=True, breaks=np.array([10]))
    picture(panel, tmp_path / "f.png")
    history = drawn[0].axes[0].lines[0]
    found = np.asarray(history.get_ydata(), dtype=float)
    wanted = np.insert(values[:, 0], 10, np.nan)
    np.testing.assert_array_equal(found, wanted[-len(found) :])
    times = pd.DatetimeIndex(history.get_xdata())
    assert times.is_monotonic_increasing
    assert times[-1] == panel.times[-1]
    assert history.get_marker() == "."  # the value between two that are missing is seen


def test_a_series_without_a_window_in_the_test_part_is_left_out(make_panel, tmp_path, drawn, monkeypatch):
    panel = make_panel([waves()] * 3)
    rows = panel.lengths[0]
    monkeypatch.setattr(preparation, "origin_rows", lambda prepared: np.array([20, 2 * rows + 20]))
    prepared = SimpleNamespace(
        problem=SimpleNamespace(lookback=8, horizon=HORIZON),
        panel=panel,
        test=SimpleNamespace(series=np.array([0, 2])),
    )
    fitted = SimpleNamespace(settings=SimpleNamespace(model=SimpleNamespace(name="net")), problem=Problem())
    result = SimpleNamespace(prepared=prepared, fitted=fitted, forecast=np.ones((2, HORIZON, 1)))
    plots.plot_test(result, tmp_path / "f.png")
    assert titles(drawn[0]) == ["s0 y0", "s2 y0"]


def test_of_many_series_the_first_the_last_and_some_between_are_drawn(make_panel, tmp_path, drawn):
    picture(make_panel([waves()] * 101), tmp_path / "f.png")
    assert titles(drawn[0]) == [f"s{i} y0" for i in (0, 20, 40, 60, 80, 100)]


@pytest.mark.parametrize("ending", [".png", ".svg"])
@pytest.mark.parametrize(
    "name", ["$x^{2 $", r"\frac{$5$", "日本語", "a\x00b\x0bc\nd", "\ud800", "<&>", "_$_", " ", "W" * 500]
)
def test_any_name_is_drawn_as_it_stands_and_without_a_warning(make_panel, tmp_path, drawn, name, ending):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture(make_panel([waves()], names=[name]), tmp_path / f"f{ending}", model=name)
    if len(name) < 20 and name.isprintable():
        assert titles(drawn[0]) == [name.strip()]
    assert not drawn[0].axes[0].title.get_parse_math()


@pytest.mark.parametrize("name", ["y", "W" * 500, "a long name " * 30])
def test_the_legend_hides_neither_data_nor_title(make_panel, tmp_path, drawn, name):
    picture(make_panel([waves()], names=[name]), tmp_path / "f.png", model=name)
    figure = drawn[0]
    figure.draw_without_rendering()
    axis = figure.axes[0]
    legend, title = axis.get_legend().get_window_extent(), axis._left_title.get_window_extent()
    assert legend.y0 >= axis.bbox.y1
    assert title.x1 <= legend.x0
    assert title.width > 0.5 * axis.bbox.width or name == "y"
    assert figure._suptitle.get_window_extent().y0 >= max(legend.y1, title.y1)
    assert figure._suptitle.get_window_extent().width <= figure.bbox.width


def test_the_settings_of_matplotlib_are_left_alone(make_panel, tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    picture(make_panel([waves()]), tmp_path / "f.png")
    assert dict(matplotlib.rcParams) == before


def test_a_picture_is_replaced_as_a_whole(make_panel, tmp_path):
    (tmp_path / "real.png").write_bytes(b"old")
    (tmp_path / "link.png").symlink_to("real.png")
    picture(make_panel([waves()]), tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert (tmp_path / "real.png").read_bytes().startswith(b"\x89PNG")
    assert left_behind(tmp_path) == ["link.png", "real.png"]


def test_a_full_disk_leaves_the_old_picture_and_nothing_else(make_panel, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    (tmp_path / "f.png").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResourceError) as error:
        picture(make_panel([waves()]), tmp_path / "f.png")
    assert str(error.value) == f"cannot write the picture '{tmp_path / 'f.png'}': No space left on device"
    assert left_behind(tmp_path) == ["f.png"]
    assert (tmp_path / "f.png").read_bytes() == b"old"


def test_a_place_that_cannot_be_written_is_one_line(make_panel, tmp_path):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("")
    for file in ("folder.png", "file/f.png"):
        with pytest.raises(ResourceError, match="cannot write the picture") as error:
            picture(make_panel([waves()]), tmp_path / file)
        assert "\n" not in str(error.value)
    assert left_behind(tmp_path) == ["file", "folder.png"]


def test_what_cannot_be_drawn_is_one_line(make_panel, tmp_path):
    with pytest.raises(ResourceError, match="cannot draw the picture") as error:
        picture(make_panel([1.5e308 * waves()]), tmp_path / "f.png")
    assert "\n" not in str(error.value)
    assert left_behind(tmp_path) == []
