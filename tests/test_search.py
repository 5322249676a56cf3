"""What a study may choose for an option: declared, in words, and kept within the option's own bounds."""

from typing import Literal

import pytest

from tsformer import Config, Field
from tsformer.plugin import ModelPlugin, option_type
from tsformer.registry import Kind, entries, get
from tsformer.search import Choices, Range, declared, read_space
from tsformer.settings import TrainConfig


class Options(Config):
    width: int = Field(8, ge=1, le=512, search=(16, 256), description="w")
    rate: float = Field(0.1, gt=0, search=(0.1, 0.5), description="r")
    steep: float = Field(1.0, ge=0, search=(1, 5, "log"), description="s")
    heads: int | None = Field(None, ge=1, search=[2, 4], description="h")
    flat: bool = Field(False, search=True, description="f")
    kind: Literal["a", "b"] = Field("a", search=True, description="k")
    left: int = Field(1, description="l")


def test_spaces_that_are_declared():
    found = {name: declared(Options, name) for name in Options.model_fields}
    assert found == {
        "width": Range(16, 256, log=True, whole=True),  # sixteen times as wide
        "rate": Range(0.1, 0.5, log=False, whole=False),
        "steep": Range(1, 5, log=True, whole=False),
        "heads": Choices((2, 4)),
        "flat": Choices((False, True)),
        "kind": Choices(("a", "b")),
        "left": None,
    }


@pytest.mark.parametrize(
    ("name", "words", "space"),
    [
        ("width", "16:32", Range(16, 32, log=False, whole=True)),
        ("width", "16:32:log", Range(16, 32, log=True, whole=True)),
        ("width", "16:256:linear", Range(16, 256, log=False, whole=True)),
        ("width", "8, 64", Choices((8, 64))),
        ("rate", "1e-4:1e-2", Range(1e-4, 1e-2, log=True, whole=False)),
        ("flat", "", Choices((False, True))),
        ("kind", "b,a", Choices(("b", "a"))),
    ],
)
def test_spaces_in_words(name, words, space):
    field = Options.model_fields[name]
    assert read_space(words, field, option_type(field.annotation)) == space
    assert read_space(str(space), field, option_type(field.annotation)) == space


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((0, 8), "greater than or equal to 1"),
        ((1, 600), "less than or equal to 512"),
        ((1.5, 8), "valid integer"),
        ((8, 8), "a low number to a higher one"),
        ((1, 8, "quadratic"), "'log' or 'linear'"),
        ([8], "two values or more"),
        ([8, 8], "each of them once"),
        ([8, "16"], "valid integer"),
        (True, "true or false"),
        (3, "neither a range"),
    ],
)
def test_spaces_outside_of_an_options_bounds_are_refused_where_they_are_declared(given, why):
    with pytest.raises(TypeError, match=rf"^Wrong\.width: search: .*{why}"):

        class Wrong(Config):
            width: int = Field(8, ge=1, le=512, search=given, description="w")


def test_a_range_of_zero_has_no_logarithm_and_words_have_no_range():
    with pytest.raises(TypeError, match="begins above 0"):

        class Zero(Config):
            rate: float = Field(0.1, ge=0, search=(0, 1, "log"), description="r")

    with pytest.raises(TypeError, match="a range is for numbers"):

        class Word(Config):
            kind: Literal["a", "b"] = Field("a", search=("a", "b"), description="k")

    with pytest.raises(TypeError, match="several times"):

        class Many(Config):
            sizes: tuple[int, ...] = Field((), search=[1, 2], description="s")


def test_every_network_declares_what_is_worth_a_search():
    for name in entries(Kind.MODEL):
        plugin = get(Kind.MODEL, name)
        assert isinstance(plugin, ModelPlugin)
        fields = plugin.config.model_fields
        for option in {"d_model", "dropout", "n_layers", "encoder_layers", "variant", "normalise"} & set(fields):
            assert declared(plugin.config, option) is not None, (name, option)
    for option in ("lr", "weight_decay", "batch_size", "loss"):
        assert declared(TrainConfig, option) is not None
