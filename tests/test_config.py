"""Layers of configuration: who wins, and every fault at once."""

import json

import pytest

from tsformer import registry
from tsformer.config import resolve
from tsformer.errors import PluginError, UsageError
from tsformer.layers import Layer, read_file
from tsformer.settings import TrainConfig


def layer(source=None, model=(), **values):
    return Layer({"model": {"name": "transformer", **dict(model)}, "data": {"name": "sine"}, **values}, source)


def test_later_layers_win():
    settings = resolve([layer("f", train={"lr": 0.1, "seed": 3}), layer(train={"lr": 0.2})])
    assert (settings.train.lr, settings.train.seed) == (0.2, 3)


def test_not_given_does_not_win():
    assert resolve([layer("f", train={"lr": 0.1}), layer(train={"lr": None})]).train.lr == 0.1


def test_options_of_a_replaced_plugin_are_dropped():
    old = Layer({"model": {"name": "tcn_transformer", "stride": 4, "d_model": 32}, "data": {"name": "sine"}}, "f")
    settings = resolve([old, Layer({"model": {"name": "transformer"}})])
    assert settings.model.name == "transformer"
    assert settings.model.config.d_model == 64


def test_all_faults_at_once_by_the_name_that_the_user_knows():
    with pytest.raises(UsageError) as caught:
        resolve(
            [
                layer("run.toml", train={"lr": -1}),
                layer(model={"d_model": "65", "dropout": "2", "d_mdel": "3"}, train={"epochs": "many", "loss": "mee"}),
            ]
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    for said in (
        "--model.d-mdel: unknown option; did you mean 'd_model'?",
        "--model.dropout: input should be less than 1 (got '2')",
        "train.lr in run.toml: input should be greater than 0 (got -1)",
        "--train.epochs: input should be a valid integer",
        "--train.loss: input should be 'mse', 'mae',",
    ):
        assert any(line.startswith(said) for line in lines), (said, lines)


def test_options_that_do_not_go_together():
    with pytest.raises(UsageError, match="--model: n_heads 4 does not divide d_model 65"):
        resolve([layer(model={"d_model": "65"})])


def test_model_and_data_are_required():
    with pytest.raises(UsageError, match="no model: give --model NAME"):
        resolve([Layer({})])


def test_numbers_are_finite():
    with pytest.raises(UsageError, match="finite"):
        resolve([layer(train={"lr": "nan"})])


def test_transforms_in_order_and_the_scaler_last():
    settings = resolve([layer(transform=["log"])])
    assert [chosen.name for chosen in settings.transforms] == ["log"]
    assert settings.scale.name == "standard"
    assert resolve([layer(scale={"name": "none"})]).scale is None


def test_a_scaler_among_the_transforms_replaces_the_last_one():
    settings = resolve([layer(transform=["standard", "log"])])
    assert settings.scale is None


def test_unknown_transform():
    with pytest.raises(PluginError, match="unknown transform 'log_retrun'; did you mean 'log_return'"):
        resolve([layer(transform=["log_retrun"])])


def test_settings_come_back_from_json():
    settings = resolve([layer(transform=["log"], model={"d_model": 32}, train={"lr": 0.01})])
    again = resolve([Layer(json.loads(json.dumps(settings.to_json())), "config.json")])
    assert again == settings


TOML = """
[model]
name = "tcn_transformer"
d_model = 32
[data]
name = "csv"
path = "x.csv"
[[transform]]
name = "log_return"
[window]
horizon = 7
[train]
lr = 1e-3
"""


def test_a_toml_file(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(TOML)
    settings = resolve([read_file(str(file))])
    assert settings.model.config.d_model == 32
    assert settings.data.config.path == "x.csv"
    assert [t.name for t in settings.transforms] == ["log_return"]
    assert (settings.window.horizon, settings.train.lr) == (7, 1e-3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[modle]\nname='x'", r"unknown section \[modle\].*did you mean 'model'"),
        ("[model", "cannot be read"),
        ("[model]\nname = 3", "needs the name of a plugin"),
        ("[[transform]]\nk = 3", "needs the name of a plugin"),
        ("x = " + "[" * 100_000, "cannot be read"),
        ("[window]\nhorizon = 1e30", "--window.horizon|window.horizon in"),
        ("model = 3", "must be a table"),
        ("[train]\nlr = true", r"train.lr in .*run.toml: a number is wanted \(got True\)"),
        ("train = 'x'", "must be a table"),
        ("[[transform]]\nname = 3", "needs the name of a plugin"),
    ],
)
def test_a_faulty_file(tmp_path, text, said):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises((UsageError, PluginError), match=said):
        resolve([read_file(str(file)), layer()])


def test_a_file_may_leave_the_name_to_a_flag(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[model]\nd_model = 32\n")
    assert resolve([read_file(str(file)), layer()]).model.config.d_model == 32


OPTIONED = """
from tsformer import Config, Field, TransformPlugin

class Options(Config):
    k: float = Field(1.0, description="a factor")

class Times:
    pointwise, lost_rows = True, 0
    def __init__(self, config): self.k = config.k
    def fit(self, rows): return {}
    def forward(self, values, state): return values * self.k
    def inverse(self, path, state, anchor): return path / self.k

plugin = TransformPlugin(config=Options, build=Times, example=Options())
"""


def test_options_of_transforms_go_by_name_and_occurrence(tmp_path, own_registry):
    (tmp_path / "times.py").write_text(OPTIONED)
    registry.load_file(tmp_path / "times.py")
    listed = layer("f", transform=[{"name": "times", "k": 2}, "log", {"name": "times", "k": 3}])
    assert [c.config.k for c in resolve([listed]).transforms if c.name == "times"] == [2, 3]
    flags = Layer({"transform": ["log", "times"], "transform_options": {"times": {"k": "5"}}})
    assert resolve([listed, Layer({"transform": ["log", "times"]})]).transforms[1].config.k == 2
    assert resolve([listed, flags]).transforms[1].config.k == 5
    scaled = resolve([layer(scale={"name": "times", "k": 7}), Layer({"transform_options": {"times": {"k": "8"}}})])
    assert scaled.scale.config.k == 8
    with pytest.raises(UsageError, match=r"--transform\.times\.k: input should be a valid number"):
        resolve([layer(scale={"name": "times"}), Layer({"transform_options": {"times": {"k": "x"}}})])


def test_a_missing_file():
    with pytest.raises(UsageError, match="no configuration file"):
        read_file("nowhere.toml")


@pytest.mark.parametrize(
    ("options", "steps"),
    [({}, 500), ({"max_steps": 7}, 7), ({"epochs": 3}, 6), ({"epochs": 3, "max_steps": 5}, 5)],
)
def test_steps_of_a_run(options, steps):
    assert TrainConfig(batch_size=64, **options).steps_for(100) == steps


@pytest.mark.parametrize(("windows", "size"), [(1, 1), (65, 16), (256, 64), (10_000, 64)])
def test_few_windows_make_small_batches(windows, size):
    assert TrainConfig().batch_for(windows) == size
    assert TrainConfig(batch_size=5).batch_for(windows) == 5
