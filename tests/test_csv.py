"""The csv plugin: options in, panel out."""

import io
import sys

import pytest
from pydantic import ValidationError
from tsformer_plugins.data.csv import CsvConfig, plugin

from tsformer.data.panel import Panel
from tsformer.errors import DataError

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
    }


def test_encoding(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("date,größe\n2024-01-01,1\n2024-01-02,1\n2024-01-03,1\n".encode("cp1252"))
    assert plugin.load(CsvConfig(path=str(path), encoding="cp1252")).schema.targets == ("größe",)
    with pytest.raises(DataError, match=r"byte 7 \(line 1\)"):
        plugin.load(CsvConfig(path=str(path)))


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
    with pytest.raises(DataError, match=r"sales\.csv: column 'when', line 2: '01/03/2024'"):
        plugin.load(CsvConfig(path=file, sep=";", decimal=",", id="shop"))


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
    assert flags == {name: f"--{name}".replace("_", "-") for name in CsvConfig.model_fields}
