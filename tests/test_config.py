"""Layers of configuration: who wins, and every fault at once."""

import json

import pytest

from tsformer import Config, DataPlugin, Field, ModelPlugin, register, registry
from tsformer.config import FROM_PLUGINS, resolve, trace
from tsformer.config_layer import Layer, read_file
from tsformer.errors import PluginError, UsageError
from tsformer.plugin import Task, changed
from tsformer.settings import TrainConfig, TransferConfig


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


def test_model_and_data_are_required_beside_all_else():
    with pytest.raises(UsageError) as caught:
        resolve([Layer({"train": {"lr": "abc"}, "scale": {"k": 3}})])
    starts = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert starts == ["no model", "no data", "--scale.k", "--train.lr"]


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


ROBUST = {"scale": {"name": "robust", "low": 10}}


def test_a_scaler_in_a_lower_layer_is_replaced():
    resolved = trace([layer("f", **ROBUST), layer(transform=["minmax"])])
    assert resolved.settings.scale is None
    assert resolved.origins["scale"] == {"name": "transform minmax takes its place"}


@pytest.mark.parametrize(
    ("layers", "named"),
    [
        ([layer(transform=["minmax"], **ROBUST)], "--scale, --scale.low"),
        ([layer("f", transform=["minmax"]), layer(**ROBUST)], "--scale, --scale.low"),
        ([layer("f", transform=["minmax"], scale="standard")], "scale.name in f"),
        ([layer("f", **ROBUST), Layer({"transform": ["minmax"], "scale": {"high": 80}})], "--scale.high"),
        (
            [layer("f", **ROBUST), Layer({"transform": ["minmax"], "transform_options": {"robust": {"low": 5}}})],
            "--transform.robust.low",
        ),
    ],
)
def test_a_scaler_beside_or_above_another_would_have_no_effect(layers, named):
    with pytest.raises(UsageError) as caught:
        resolve(layers)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{named}: no effect, because the transform minmax is a scaler")


def test_options_of_a_transform_are_not_taken_for_those_of_the_scaler_that_it_replaces():
    flags = {"transform": ["robust"], "transform_options": {"robust": {"low": 5}}}
    (robust,) = resolve([layer("f", **ROBUST), Layer(flags)]).transforms
    assert robust.config.low == 5


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ({"name": "robust", "lwo": 3}, "scale.lwo in f: unknown option; did you mean 'low'"),
        ({"lwo": 3}, "scale.lwo in f: unknown option"),
        ({"name": "robsut"}, "unknown transform 'robsut'; did you mean 'robust'"),
        ({"name": "none", "low": 3}, "scale.low in f: unknown option"),
    ],
)
def test_a_scaler_is_validated_where_it_is_replaced_too(scale, said):
    with pytest.raises((UsageError, PluginError), match=said):
        resolve([layer("f", scale=scale), layer(transform=["minmax"])])


@pytest.mark.parametrize(
    ("values", "after"),
    [({}, "standard"), ({"scale": "none"}, None)],
    ids=["not said", "none"],
)
def test_a_replaced_scaler_is_not_stored_as_none(values, after):
    settings = resolve([layer(transform=["minmax"], **values)])
    stored = Layer(json.loads(json.dumps(settings.to_json())), "config.json")
    assert resolve([stored]) == settings
    scale = resolve([stored, Layer({"transform": ["log"]})]).scale
    assert (scale and scale.name) == after


@pytest.mark.parametrize("none", ["none", ["none"], [{"name": "none"}]])
def test_transforms_are_undone_by_a_layer_above(none):
    below = layer("f", transform=[{"name": "asinh", "scale": 2}])
    resolved = trace([below, Layer({"transform": none})])
    assert (resolved.settings.transforms, resolved.origins["transform"]) == ((), [])
    assert resolved.settings.scale.name == "standard"
    assert resolve([below, Layer({"transform": none}), Layer({"transform": ["log"]})]).transforms[0].name == "log"


@pytest.mark.parametrize("transform", [["none", "log"], ["log", "none"], [{"name": "none", "scale": 3}]])
def test_no_transform_goes_alone(transform):
    with pytest.raises(UsageError, match="--transform: none goes without other transforms and options"):
        resolve([layer(transform=transform)])


def test_faults_are_not_hidden_by_a_plugin_that_is_missing():
    values = {"data": {"name": "csv"}, "transform": ["lag", "lag"], "train": {"lr": "abc"}, "window": {"horizon": 0}}
    with pytest.raises(PluginError) as caught:
        resolve([Layer({"model": {"name": "transfromer"}, **values})])
    starts = ["unknown model 'transfromer'", "--data.path is required", "unknown transform 'lag'"]
    starts += ["--window.horizon: ", "--train.lr: "]
    lines = str(caught.value).splitlines()
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts


def test_the_cause_of_a_broken_plugin_is_kept(monkeypatch):
    cause = ZeroDivisionError()

    def get(kind, name):
        raise PluginError("it is broken") from cause

    monkeypatch.setattr(registry, "get", get)
    with pytest.raises(PluginError, match="it is broken") as caught:
        resolve([layer()])
    assert caught.value.__cause__ is cause


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
        ("horizon = 12", r"horizon in .*run.toml is outside of all sections: put it under \[window\]"),
        ("batch-size = 12", r"batch-size in .* put it under \[train\]"),
        ("[train]\nhorizon = 12", r"train.horizon in .*run.toml: unknown option; 'horizon' belongs to window"),
        ("[model]\nlr = 1", r"model.lr in .*run.toml: unknown option; 'lr' belongs to train"),
        ("[horizon]\nx = 12", r"unknown section \[horizon\]"),
        ("scale = ''", r"^scale.name in .*run.toml is empty: give the name of a plugin"),
    ],
)
def test_a_faulty_file(tmp_path, text, said):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises((UsageError, PluginError), match=said):
        resolve([read_file(str(file)), layer()])


@pytest.mark.parametrize(("name", "text"), [("run.toml", TOML), ("run.json", '{"train": {"lr": 1e-3}}')])
def test_a_byte_order_mark(tmp_path, name, text):
    """As editors on Windows write it."""
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert resolve([read_file(str(tmp_path / name)), layer()]).train.lr == 1e-3


@pytest.mark.parametrize("name", ["", "  "])
@pytest.mark.parametrize(
    ("section", "given"),
    [("model", {"name": ...}), ("data", {"name": ...}), ("scale", ...), ("scale", {"name": ...}), ("transform", [...])],
)
def test_an_empty_name_is_no_name_left_out(name, section, given):
    given = [name] if isinstance(given, list) else {"name": name} if isinstance(given, dict) else name
    with pytest.raises(UsageError) as caught:
        resolve([layer("f", transform=["minmax"]) if section == "transform" else layer("f"), Layer({section: given})])
    assert str(caught.value) == f"--{section} is empty: give the name of a plugin, or leave it out"


def test_faults_keep_one_line_each_whatever_the_names_hold():
    names = {"train": {"lr\nx": 1, "a\r\x1b[2Jb": 2}, "model": {"name": "li\nnear\u2028\x85"}}
    with pytest.raises(PluginError) as caught:
        resolve([layer(), Layer(names, "a\nb.json")])
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == [
        r"train.lr\nx in a\nb.json",
        r"train.a\r\x1b[2Jb in a\nb.json",
    ]
    assert lines[0].startswith(r"unknown model 'li\nnear\u2028\x85'")
    assert all(line.isprintable() for line in lines)


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


def reader(*tasks, of=DataPlugin):
    """A plugin for these tasks."""
    return of(Config, print, Config(), tasks=set(tasks))


@pytest.fixture
def letters(own_registry):
    """Data for classes."""
    register("letters", reader(Task.CLASSIFY, Task.PRETRAIN))
    register("judge", reader(*Task, of=ModelPlugin))


PAIR = {"model": "judge", "data": "letters"}


def test_the_task_follows_from_model_and_data_or_is_named(letters):
    found = trace([Layer(PAIR)])
    assert (found.settings.task, found.origins["task"]) == (Task.CLASSIFY, FROM_PLUGINS)
    found = trace([Layer({"task": "pretrain"}, "run.toml"), Layer(PAIR)])
    assert (found.settings.task, found.origins["task"]) == (Task.PRETRAIN, "run.toml")
    found = trace([Layer({"task": "classify"}, "run.toml"), Layer({**PAIR, "task": "pretrain"})])
    assert (found.settings.task, found.origins["task"]) == (Task.PRETRAIN, "--task")


def test_saved_settings_come_back_whatever_they_are(letters):
    given = {**PAIR, "tokens": {"max_size": 99}, "transfer": {"text_rate": 0.5}, "task": "pretrain", "scale": "none"}
    settings = resolve([Layer(given)])
    assert resolve([Layer(settings.to_json(), "config.json")]) == settings


def test_settings_from_before_there_were_tasks():
    saved = {k: v for k, v in resolve([layer()]).to_json().items() if k not in ("task", "tokens", "transfer")}
    assert resolve([Layer(saved, "config.json")]) == resolve([layer()])


def test_a_task_of_a_file_gives_way_to_other_data_that_cannot_do_it(letters):
    forecast = Layer({"model": "judge", "data": "sine", "task": "forecast"}, "run.toml")
    assert resolve([forecast, Layer({"data": {"name": "letters"}})]).task is Task.CLASSIFY
    with pytest.raises(UsageError, match=r"task forecast: data 'letters' is for classify or pretrain.*\(run.toml\)"):
        resolve([Layer({**PAIR, "task": "forecast"}, "run.toml")])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"task": "clasify"}, "unknown task 'clasify'; did you mean 'classify'"),
        ({"task": "sequence"}, "task sequence: data 'letters' is for classify or pretrain"),
        ({"transform": ["log"]}, "--transform is for forecasts, and the task is classify; --scale acts on all numbers"),
        (
            {"window": {"horizon": "3"}},
            "--window.horizon: horizon 3 is for forecast and pretrain, and the task is classify",
        ),
        ({"train": {"loss": "mae", "hidden_span": "2"}}, "--train.loss: loss mae is for forecast"),
        ({"tokens": {"max_size": "3"}}, "--tokens.max-size: input should be greater than or equal to 8"),
        ({"transfer": {"freeze": "true"}}, "--transfer: freeze and loaded_rate are for what was loaded"),
    ],
)
def test_what_contradicts_the_task(letters, given, said):
    with pytest.raises(UsageError) as caught:
        resolve([Layer({**PAIR, **given})])
    assert str(caught.value).startswith(said)


def test_rows_are_pretrained_on_in_windows_after_transforms(letters):
    given = {"model": "judge", "data": "sine", "task": "pretrain", "transform": ["log"], "window": {"horizon": 3}}
    found = resolve([Layer(given)])
    assert (found.transforms[0].name, found.window.horizon) == ("log", 3)


def test_what_a_file_sets_for_another_task_is_not_read_and_said_so(letters):
    file = {**PAIR, "transform": [{"name": "log"}], "train": {"loss": "mae", "lr": 0.1}, "window": {"horizon": 3}}
    found = trace([Layer(file, "run.toml"), Layer({"task": "classify"})])
    assert found.settings.transforms == ()
    assert found.settings.train.lr == 0.1
    assert found.origins["train"]["loss"].startswith("run.toml, not read: loss mae is for forecast")
    assert found.origins["train"]["lr"] == "run.toml"
    assert found.origins["window"]["horizon"].startswith("run.toml, not read")
    assert found.origins["window"]["season"] == "default"


def test_a_model_may_refuse_its_options_for_a_task(own_registry):
    class Options(Config):
        pooling: str = Field("mean", description="how")

        def faults_for(self, task):
            yield from super().faults_for(task)
            yield from (f"{option} is for classify" for option in changed(self, "pooling") if task != Task.CLASSIFY)

    register("pools", ModelPlugin(Options, print, Options(), tasks=set(Task)))
    named = Layer({"model": {"name": "pools", "pooling": "last"}}, "run.toml")
    assert resolve([named, Layer({"task": "classify"})], needs_data=False).model.config.pooling == "last"
    with pytest.raises(UsageError, match=r"^--model: pooling last is for classify \(model.pooling in run.toml\)$"):
        resolve([named], needs_data=False)


def test_a_task_in_a_file_is_a_word(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[task]\nname = 'classify'\n")
    assert read_file(str(file)).faults == (f"task in {file} must be a word: forecast, classify, sequence, pretrain",)
    file.write_text("task = 'classify'\n[model]\nname = 'transformer'\n")
    assert read_file(str(file)).values["task"] == "classify"


def test_an_earlier_run_is_remembered_by_its_full_path(in_tmp):
    (in_tmp / "old").mkdir()
    assert TransferConfig(init_from="old").init_from == str(in_tmp / "old")
    assert TransferConfig(init_from="latest").init_from == "latest"
