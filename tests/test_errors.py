"""Whose fault it is, and that nothing which is said of it gets lost."""

import os

import pytest

from tsformer import Config, Field, ModelPlugin, Problem
from tsformer.errors import PluginError, at_fault
from tsformer.memory import size_of_model
from tsformer.plugin import changed
from tsformer.registry import Kind
from tsformer.settings import Chosen


class Panic(BaseException):
    """What extensions raise."""


class Options(Config):
    names: tuple[str, ...] = Field(description="names", default_factory=tuple)
    size: int = Field(3, description="size")


def test_the_fault_itself_is_told_even_if_the_folder_is_gone(in_tmp):
    (in_tmp / "inner").mkdir()
    os.chdir("inner")

    def build():
        with at_fault("the model", "build"):
            os.chdir(in_tmp)
            os.rmdir("inner")
            raise ValueError("the real fault")

    with pytest.raises(PluginError, match=r"the model fails in build: ValueError: the real fault"):
        build()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_is_nobodys_fault_passes(error):
    with pytest.raises(error), at_fault("the model", "build"):
        raise error


def test_a_model_is_sized_without_trusting_it(in_tmp):
    def build(config, problem):
        os.chdir("/")
        raise Panic("odd")

    model = Chosen(Kind.MODEL, "odd", ModelPlugin(config=Options, build=build, example=Options()), Options())
    assert size_of_model(model, Problem(lookback=3, horizon=2, targets=1)) is None
    assert os.getcwd() == str(in_tmp)


def test_what_is_not_at_its_default():
    assert changed(Options(), "names", "size") == []
    assert changed(Options(names=("a",), size=4), "names", "size") == ["names ('a',)", "size 4"]
