"""Confusion: tables, and pictures of few and of many classes, whatever their names."""

import numpy as np
import pandas as pd
import pytest

from tsformer.errors import ResourceError
from tsformer.evaluation.classes import class_score
from tsformer.report.confusion import LONGEST, MOST_NAMED, confusion_frame, plot_confusion, report_frame

pytest.importorskip("matplotlib")

from matplotlib import font_manager
from matplotlib.figure import Figure


def score(names, examples=200, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, len(names), examples)
    return class_score(labels, generator.dirichlet(np.ones(len(names)), examples), names)


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


def ticks(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_truth_is_in_rows_and_prediction_in_columns():
    frame = confusion_frame(class_score(np.array([0, 0, 1]), np.eye(3)[[0, 2, 1]], ("财经", "b", "[c]")))
    assert (frame.index.name, frame.columns.name) == ("truth", "prediction")
    assert frame.loc["财经", "[c]"] == 1
    assert frame.loc["[c]", "财经"] == 0
    assert frame.to_numpy().sum() == 3


def test_the_report_has_a_row_for_each_class():
    frame = report_frame(class_score(np.array([0, 0, 1]), np.eye(3)[[0, 1, 1]], ("a", "b", "c")))
    expected = pd.DataFrame(
        {"precision": [1, 0.5, None], "recall": [0.5, 1, None], "f1": [2 / 3, 2 / 3, None], "support": [2, 1, 0]},
        index=pd.Index(["a", "b", "c"], name="class"),
    )
    pd.testing.assert_frame_equal(frame, expected)


@pytest.mark.parametrize("count", [1, 2, 12, 13])
def test_counts_stand_in_their_cells_and_colours_are_shares_of_the_row(tmp_path, drawn, count):
    names = tuple(f"class {i}" for i in range(count))
    some = score(names)
    plot_confusion(some, tmp_path / "new/c.png")
    (axis, _) = drawn[0].axes
    assert ticks(drawn[0]) == list(names)
    written = {(int(text.get_position()[1]) - 1, int(text.get_position()[0]) - 1): text for text in axis.texts}
    for cell, counted in np.ndenumerate(some.confusion):
        if counted or count <= 12:
            assert written.pop(cell).get_text() == str(counted)
    assert not written
    shares = np.asarray(axis.images[0].get_array())
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose(shares * some.confusion.sum(1)[:, None], some.confusion)
    assert axis.images[0].get_extent() == [0.5, count + 0.5, count + 0.5, 0.5]
    assert (tmp_path / "new/c.png").read_bytes().startswith(b"\x89PNG")


def overlaps(texts):
    boxes = [text.get_window_extent() for text in texts]
    return any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[:number])


@pytest.mark.parametrize(("count", "examples"), [(2, 20_000), (14, 40_000), (60, 500)])
def test_names_and_counts_do_not_overlap_and_are_within_the_picture(tmp_path, drawn, count, examples):
    names = tuple(f"category_{i:02d} of things" for i in range(count))
    plot_confusion(score(names, examples), tmp_path / "c.png")
    (figure,) = drawn
    figure.draw_without_rendering()  # with the resolution that text is measured in
    axis, bar = figure.axes
    for labels in (axis.get_xticklabels(), axis.get_yticklabels(), axis.texts[: 2 * len(names)]):
        assert labels
        assert not overlaps(labels)
    around = [*axis.get_xticklabels(), *axis.get_yticklabels(), axis.xaxis.label, axis.yaxis.label, bar.yaxis.label]
    for text in around:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


def test_many_classes_have_colours_only(tmp_path, drawn):
    plot_confusion(score(tuple(map(str, range(MOST_NAMED + 1)))), tmp_path / "c.png")
    assert not drawn[0].axes[0].texts
    assert len(ticks(drawn[0])) < 20


def test_a_class_without_examples_has_no_colour(tmp_path, drawn):
    plot_confusion(class_score(np.array([0]), np.eye(2)[[1]], ("a", "b")), tmp_path / "c.png")
    assert np.asarray(drawn[0].axes[0].images[0].get_array()).tolist() == [[0, 1], [0, 0]]
    assert "1 examples, accuracy 0" in drawn[0].get_suptitle()


def test_a_long_name_is_cut_in_the_middle(tmp_path, drawn):
    plot_confusion(score(("$x$ \x1b[1m\n" + "word " * 500 + "end", "b")), tmp_path / "c.svg")
    name = ticks(drawn[0])[0]
    assert name.startswith("$x$ [1m word")
    assert name.endswith("end")
    assert len(name) == LONGEST


def rare_sign():
    """One that matplotlib's own font lacks, and another of the fonts that come with matplotlib has."""
    own, other = (
        font_manager.get_font(font_manager.findfont(family)).get_charmap() for family in ("DejaVu Sans", "STIXGeneral")
    )
    return next(chr(code) for code in sorted(other) if code not in own and chr(code).isprintable())


def test_another_font_has_what_the_usual_one_lacks(tmp_path, drawn, capfd, recwarn, monkeypatch):
    monkeypatch.setattr(
        font_manager.fontManager,
        "ttflist",
        [font for font in font_manager.fontManager.ttflist if font.name in ("DejaVu Sans", "STIXGeneral")],
    )
    plot_confusion(score((f"a{rare_sign()}", "b")), tmp_path / "c.png")
    assert ticks(drawn[0]) == [f"a{rare_sign()}", "b"]
    assert drawn[0].axes[0].get_yticklabels()[0].get_fontfamily() == ["DejaVu Sans", "STIXGeneral"]
    assert drawn[0].axes[0].get_xlabel() == "prediction"
    assert capfd.readouterr().err == ""
    assert not recwarn.list


def test_a_name_that_no_font_has_is_a_number(tmp_path, drawn, capfd, recwarn, monkeypatch):
    monkeypatch.setattr(
        font_manager.fontManager,
        "ttflist",
        [font for font in font_manager.fontManager.ttflist if font.name in ("DejaVu Sans", "Last Resort")],
    )
    plot_confusion(score(("财经", "b", "体育 sports")), tmp_path / "c.png")
    assert ticks(drawn[0]) == ["class 1", "b", "class 3"]
    assert "no installed font" in drawn[0].axes[0].get_xlabel()
    assert capfd.readouterr().err == ""
    assert not recwarn.list


def test_what_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot write the picture") as caught:
        plot_confusion(score(("a", "b")), tmp_path / "file/c.png")
    assert "\n" not in str(caught.value)
    with pytest.raises(ResourceError, match="cannot draw the picture"):
        plot_confusion(score(("a", "b")), tmp_path / "c.nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
