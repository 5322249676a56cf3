"""The csv plugin: options in, panel out."""

import io
import sys

import pytest
from pydantic import ValidationError
from tsformer_plugins.data.csv import CsvConfig, plugin

from tsformer.data.panel import Panel
from tsformer.errors import DataError
from tsformer.tables.files import read_file

TEXT = "shop;when;sold;price\n" + "".join(
    f"{shop};{day:02}/03/2024;{day};{day},5\n" for shop in ("007", "8") for day in range(1, 6)
)
OPTIONS = {"sep": ";", "decimal": ",", "id": "shop", "time": "when", "time_format": "%d/%m/%Y"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(TEXT)
    return str(path)


def test_all_options_reach_the_table(file):
    panel = plugin.load(CsvConfig(path=file, target=("price",), **OPTIONS))
    assert panel.ids == ("007", "8")
    assert panel.values.ravel().tolist() == [1.5, 2.5, 3.5, 4.5, 5.5] * 2
    assert panel.schema.to_json() == {
        "targets": ["price"],
        "time": "when",
        "id": "shop",
        "past_covariates": [],
        "future_covariates": [],
        "frequency": "D",
        "zone": None,
        "time_format": "%d/%m/%Y",
        "text": None,
        "id_columns": [],
        "static_covariates": [],
        "calendar": [],
        "holidays": None,
        "time_columns": [],
        "decimal": ",",
        "read_format": None,
        "policies": {"decimal": ",", "sep": ";", "time_format": "%d/%m/%Y"},
    }


def test_encoding(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("date,größe\n2024-01-01,1\n2024-01-02,2\n2024-01-03,1\n".encode("cp1252"))
    assert plugin.load(CsvConfig(path=str(path), encoding="cp1252")).schema.targets == ("größe",)
    with pytest.raises(DataError, match=r"byte 7 \(line 1\)"):
        plugin.load(CsvConfig(path=str(path), encoding="utf-8"))


@pytest.mark.parametrize(
    "target", ["sold,price", "sold, price", ["sold,price"], ["sold", "price"], ("sold", " price,")]
)
def test_targets_are_repeated_or_split_at_commas(file, target):
    config = CsvConfig(path=file, target=target, **OPTIONS)
    assert config.target == ("sold", "price")
    assert plugin.load(config).schema.targets == ("sold", "price")


def test_without_targets_all_numbers_are(file):
    assert plugin.load(CsvConfig(path=file, **OPTIONS)).schema.targets == ("sold", "price")


def test_messages_name_the_file(file):
    with pytest.raises(DataError, match=r"sales\.csv has no column 'solt': did you mean 'sold'"):
        plugin.load(CsvConfig(path=file, target="solt"))


def test_only_what_is_named_is_read(file, monkeypatch):
    asked = []

    def spy(source, options, *, columns=None, text=()):
        asked.append(columns)
        return read_file(source, options, columns=columns, text=text)

    monkeypatch.setattr("tsformer.data.frames.read_file", spy)
    assert plugin.load(CsvConfig(path=file, target=("price",), **OPTIONS)).schema.targets == ("price",)
    plugin.load(CsvConfig(path=file, **OPTIONS))
    assert asked == [["when", "shop", "price"], None]


def test_new_rows_are_read_like_the_file(file, tmp_path):
    config = CsvConfig(path=file, **OPTIONS)
    schema = plugin.load(config).schema
    assert plugin.read(config, None, schema).values.tolist() == plugin.load(config).values.tolist()
    new = tmp_path / "new.csv"
    new.write_text("when;price;sold;shop\n06/03/2024;1,5;2;007\n")
    made = plugin.read(config, str(new), schema)
    assert (made.ids, made.values.tolist(), made.times[0].month) == (("007",), [[2, 1.5]], 3)
    with pytest.raises(DataError, match="fitted on stdin"):
        plugin.read(config.model_copy(update={"path": "-"}), None, schema)


def test_the_policies_hold_for_new_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("date,y\n" + "".join(f"2024-01-0{day},{day}\n" for day in range(1, 8)))
    schema = plugin.load(CsvConfig(path=str(path))).schema
    path.write_text("date,y\n2024-01-01,1\n2024-01-02,\n2024-01-02,4\n2024-01-03,3\n")
    with pytest.raises(DataError, match="repeats"):
        plugin.read(CsvConfig(path=str(path)), None, schema)
    made = plugin.read(CsvConfig(path=str(path), duplicates="last"), None, schema)
    assert made.values[:, 0].tolist() == [1, 4, 3]


def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert plugin.load(CsvConfig(path="-", **OPTIONS)).lengths.tolist() == [5, 5]


@pytest.mark.parametrize("path", ["x" * 5000, "~nobody-of-that-name/x", "a\0b"])
def test_paths_that_cannot_be(path):
    with pytest.raises(DataError, match="no file"):
        plugin.load(CsvConfig(path=path))


def test_a_path_is_needed():
    for wrong in ({}, {"path": ""}, {"path": "x", "targets": "y"}, {"path": "x", "target": 3}):
        with pytest.raises(ValidationError):
            CsvConfig(**wrong)


def test_the_example_loads_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panel = plugin.load(plugin.example)
    assert isinstance(panel, Panel)
    assert panel.ids == ("air_passengers",)


def test_flags():
    flags = {
        name: field.json_schema_extra["flag"]
        for name, field in CsvConfig.model_fields.items()
        if field.json_schema_extra
    }
    assert next(iter(CsvConfig.model_fields)) == "path"
    assert flags == {name: f"--{name}".replace("_", "-") for name in CsvConfig.model_fields}
