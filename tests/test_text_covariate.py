"""A text beside the numbers of each row: it stays with its row, and is read as it is written."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tables import DAYS, framed, message, panel
from tsformer_plugins.data.csv import CsvConfig, plugin

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.frames import panel_with_schema, read_panel
from tsformer.errors import DataError, UsageError
from tsformer.preparation import complete, prepare

HEADLINES = ["up", '"sun, and rain"', "", "NA", "007", "2024-01-05", "1.0"]
AS_WRITTEN = ("up", "sun, and rain", "", "NA", "007", "2024-01-05", "1.0")
TABLE = "day,y,headline\n" + "".join(f"{DAYS[i]},{i},{HEADLINES[i]}\n" for i in range(7))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "news.csv"
    path.write_text(TABLE)
    return str(path)


def test_cells_are_kept_as_they_are_written(file):
    made = plugin.load(CsvConfig(path=file, text="headline"))
    assert made.texts == AS_WRITTEN
    assert made.schema.text == "headline"
    assert made.schema.targets == ("y",)
    assert made.notes == ()


def test_without_the_option_there_are_no_texts(file):
    made = plugin.load(CsvConfig(path=file, target=("y",)))
    assert made.texts is None
    assert made.schema.text is None


@pytest.mark.parametrize("cells", [DAYS, [str(i) for i in range(7)]], ids=["dates", "numbers"])
def test_a_column_of_texts_is_neither_time_nor_target(tmp_path, cells):
    path = tmp_path / "news.csv"
    path.write_text(
        "date,day,y\n" + "".join(f"{c},{d},{i}\n" for i, (c, d) in enumerate(zip(cells, DAYS, strict=True)))
    )
    made = plugin.load(CsvConfig(path=str(path), text="date"))
    assert made.texts == tuple(cells)
    assert (made.schema.time, made.schema.targets) == ("day", ("y",))


def test_a_decimal_comma_leaves_texts_alone(tmp_path):
    path = tmp_path / "news.csv"
    path.write_text("day;y;said\n2024-01-01;1,5;2,5\n2024-01-02;2,5;a,b\n2024-01-03;3,5;\n")
    made = plugin.load(CsvConfig(path=str(path), text="said", sep=";", decimal=","))
    assert made.texts == ("2,5", "a,b", "")
    assert made.values.ravel().tolist() == [1.5, 2.5, 3.5]


@given(st.permutations([(shop, day) for shop in "ba" for day in range(5)]))
def test_texts_stay_with_their_rows(rows):
    frame = pd.DataFrame(
        {
            "shop": [shop for shop, _ in rows],
            "day": [pd.Timestamp(DAYS[day]) for _, day in rows],
            "y": [float(day) for _, day in rows],
            "said": [f"{shop} said {day}" for shop, day in rows],
        }
    )
    made = framed(frame, id="shop", time="day", text="said")
    expected = tuple(f"{shop} said {day}" for shop in made.ids for day in range(5))
    assert made.texts == expected
    assert panel_with_schema(frame, made.schema).texts == expected


def test_cells_of_a_frame_that_are_no_text():
    cells = ["a", None, np.nan, pd.NA, pd.NaT, 3, 2.5, [1, 2], ""]
    frame = pd.DataFrame({"y": range(9), "said": pd.Series(cells, dtype=object)})
    assert framed(frame, text="said").texts == ("a", "", "", "", "", "3", "2.5", "[1, 2]", "")
    empty = pd.DataFrame({"y": range(3), "said": [np.nan] * 3})
    assert framed(empty, text="said").texts == ("", "", "")
    grouped = pd.DataFrame({"y": range(3), "said": pd.Categorical(["x", None, "x"])})
    assert framed(grouped, text="said").texts == ("x", "", "x")


def test_new_rows_are_read_the_same_way(file, tmp_path):
    config = CsvConfig(path=file, text="headline")
    schema = plugin.load(config).schema
    assert plugin.read(config, None, schema).texts == AS_WRITTEN
    new = tmp_path / "new.csv"
    new.write_text("headline,y,day\n0042,7,2024-01-08\n,8,2024-01-09\n")
    for made in (plugin.read(config, str(new), schema), read_panel(str(new), schema)):
        assert made.texts == ("0042", "")
        assert made.notes == ()


def test_new_rows_need_the_column(file):
    schema = plugin.load(CsvConfig(path=file, text="headline")).schema
    frame = pd.DataFrame({"day": DAYS, "y": range(7), "headlines": "x"})
    with pytest.raises(
        DataError, match=r"no column 'headline': did you mean 'headlines'.*its cells may be empty"
    ) as error:
        panel_with_schema(frame, schema)
    message(error)


def test_a_column_of_texts_that_cannot_be(file):
    with pytest.raises(DataError, match="no column 'headlin': did you mean 'headline'"):
        plugin.load(CsvConfig(path=file, text="headlin"))
    for options in ({"time": "headline"}, {"id": "headline"}, {"target": ("headline",)}):
        with pytest.raises(UsageError, match="'headline' is named twice"):
            plugin.load(CsvConfig(path=file, text="headline", **options))
    frame = pd.DataFrame({"y": range(3), "said": pd.Series(["x", "a \ud83d", "y"], dtype=object)})
    with pytest.raises(DataError, match=r"column 'said' holds half of a character in row 1") as error:
        framed(frame, text="said")
    message(error)


def test_texts_do_not_tell_series_apart():
    rows = "".join(f"{day},{i},{said}\n" for said in ("up", "down") for i, day in enumerate(DAYS))
    assert panel("date,y,said\n" + rows).ids == ("up", "down")
    with pytest.raises(DataError, match="keep one row for each time") as error:
        panel("date,y,said\n" + rows, text="said")
    assert "--id said" not in message(error)


def walks(rows=300, ids=("a", "b"), seed=0):
    """Steps of 1, -1 or 0, as the text of the day before says."""
    rng = np.random.default_rng(seed)
    parts = []
    for id in ids:
        said = rng.choice(["it goes up", "down!", ""], rows)
        steps = np.select([said == "it goes up", said == "down!"], [1.0, -1.0])
        y = 100 + np.concatenate([[0], steps[:-1].cumsum()])
        parts.append(pd.DataFrame({"id": id, "day": pd.date_range("2024-01-01", periods=rows), "y": y, "said": said}))
    return pd.concat(parts)


def prepared(model="tcn", rows=300, lookback=6, **options):
    values = {"model": {"name": model, **options}, "transform": [{"name": "difference"}]}
    settings = resolve([Layer({**values, "window": {"lookback": lookback, "horizon": 1}})], needs_data=False)
    made = framed(walks(rows), id="id", text="said")
    ready = prepare(complete(settings, made), made)
    return settings, ready


def test_tokens_stay_with_their_rows_where_transforms_lose_some():
    _, ready = prepared(rows=80)
    words = ready.parts.words.tokenizer
    for part in (ready.train, ready.validation, ready.test):
        batch = part.batch()
        for window, (series, origin) in enumerate(zip(batch.series.tolist(), batch.origin.tolist(), strict=True)):
            row = origin + (series + 1) * ready.chain.lost  # in the panel
            for step in (1, 6):
                ids = batch.tokens[window, -step][batch.token_mask[window, -step]]
                assert words.decode(ids).replace(" ", "") == ready.panel.texts[row - step].replace(" ", "")


@pytest.mark.parametrize("channel_independent", [False, True])
@pytest.mark.parametrize("model", ["transformer", "tcn", "lstm", "tcn_transformer"])
def test_forecasters_read_texts(model, channel_independent):
    settings, ready = prepared(model, rows=80, channel_independent=channel_independent)
    torch.manual_seed(0)
    module = settings.model.plugin.build(settings.model.config, ready.problem).eval()
    batch = ready.train.batch(torch.arange(4))
    before = module(batch)
    before.square().sum().backward()
    read = [parameter for name, parameter in module.named_parameters() if name.startswith("inputs.")]
    assert read
    assert all(parameter.grad.abs().sum() > 0 for parameter in read)
    tokens = batch.tokens.clone()
    tokens[:, -1] = torch.where(batch.token_mask[:, -1], tokens[:, -1] % 2 + 4, 0)  # other words on the last day
    spoken = batch.token_mask[:, -1].any(-1)
    changed = (module(replace(batch, tokens=tokens)) != before).flatten(1).any(1)
    assert changed.tolist() == spoken.tolist()
    behind = torch.where(batch.token_mask, batch.tokens, 5)
    assert torch.equal(module(replace(batch, tokens=behind)), before)


def test_texts_tell_what_numbers_do_not():
    settings, ready = prepared()
    errors = {}
    for what, length in (("with", ready.problem.text_length), ("without", 0)):
        torch.manual_seed(0)
        module = settings.model.plugin.build(settings.model.config, replace(ready.problem, text_length=length))
        optimiser = torch.optim.AdamW(module.parameters(), lr=1e-2)
        batch, test = ready.train.thin(128).batch(), ready.test.batch()
        for _ in range(40):
            optimiser.zero_grad()
            (module(batch)[..., 0] - batch.future).square().mean().backward()
            optimiser.step()
        with torch.no_grad():
            errors[what] = float((module.eval()(test)[..., 0] - test.future).square().mean() / test.future.var())
    assert errors["with"] < 0.2
    assert errors["without"] > 0.7  # the steps are drawn independently
