"""Variables as a layer of configuration: what they mean, and that none is ignored in silence."""

import pytest

from tsformer import Config, Field, Forecaster, TransformPlugin, register
from tsformer.cli.environment import read_environment
from tsformer.config import FROM_DATA, resolve, trace
from tsformer.config_layer import Layer, read_file, separate
from tsformer.config_merge import DEFAULT
from tsformer.errors import PluginError, UsageError

FLAGS = Layer({"model": {"name": "transformer"}, "data": {"name": "sine"}})
FILE = Layer({"model": {"name": "transformer", "d_model": 32, "d_ff": 32}, "train": {"seed": 1}}, "run.toml")


class Options(Config):
    k: float = Field(1.0, description="a factor")


def settings(environment, *, below=(), above=(FLAGS,)):
    return resolve([*below, read_environment(environment), *above])


def test_between_file_and_flags():
    environment = {"TSFORMER_OPT__MODEL__D_MODEL": "128", "TSFORMER_OPT__TRAIN__SEED": "2"}
    found = settings(environment, below=[FILE], above=[FLAGS, Layer({"train": {"seed": "3"}})])
    assert (found.model.config.d_model, found.model.config.d_ff, found.train.seed) == (128, 32, 3)


@pytest.mark.parametrize("variable", ["TSFORMER_OPT__TRAIN__LR", "tsformer_opt__train__lr", "Tsformer_Opt__Train__Lr"])
def test_in_any_case(variable):
    assert settings({variable: "0.5"}).train.lr == 0.5


def test_plugins_by_name():
    environment = {
        "TSFORMER_OPT__MODEL": "transformer",
        "TSFORMER_OPT__DATA__NAME": " csv ",
        "TSFORMER_OPT__DATA__PATH": "x.csv",
        "TSFORMER_OPT__DATA__TARGET": "a, b",
        "TSFORMER_OPT__TRANSFORM": "log, log_return",
        "TSFORMER_OPT__SCALE": "none",
    }
    found = settings(environment, above=[])
    assert (found.model.name, found.data.name, found.scale) == ("transformer", "csv", None)
    assert found.data.config.target == ("a", "b")
    assert [chosen.name for chosen in found.transforms] == ["log", "log_return"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a", ["a"]),
        ("a, b,", ["a", "b"]),
        ('["a,b", "c"]', ["a,b", "c"]),
        ("[60, 7]", [60, 7]),
        ("[/]", ["[/]"]),
        ("[" * 10**5, ["[" * 10**5]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_several_values_in_one_text(text, values):
    assert separate(text) == values


def test_task_tokens_and_transfer():
    environment = {
        "TSFORMER_OPT__TASK": " pretrain ",
        "TSFORMER_OPT__TOKENS__MAX_SIZE": "50",
        "TSFORMER_OPT__TRANSFER__INIT_FROM": "latest",
        "TSFORMER_OPT__TRANSFER__FREEZE": "true",
    }
    found = trace([read_environment(environment), Layer({"model": {"name": "transformer"}})], needs_data=False)
    assert (found.settings.task, found.origins["task"]) == ("pretrain", "TSFORMER_OPT__TASK")
    assert found.settings.tokens.max_size == 50
    assert (found.settings.transfer.init_from, found.settings.transfer.freeze) == ("latest", True)
    with pytest.raises(UsageError, match=r"unknown task 'x' .*\(TSFORMER_OPT__TASK\)"):
        settings({"TSFORMER_OPT__TASK": "x"})


def test_numbers_of_an_option_that_takes_several():
    assert settings({"TSFORMER_OPT__DATA__PERIOD": "60,7"}).data.config.period == (60, 7)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("TSFORMER_OPT__MODEL__D_MODLE", "unknown option; did you mean 'd_model'"),
        ("TSFORMER_OPT__MODLE__D_MODEL", "unknown section; did you mean 'TSFORMER_OPT__MODEL'"),
        ("TSFORMER_OPT__TSK", "unknown section; did you mean 'TSFORMER_OPT__TASK'"),
        ("TSFORMER_OPT__TASK__NAME", "unknown section; did you mean 'TSFORMER_OPT__TASK'"),
        ("TSFORMER_OPT__MAX_SIZE", "names no section; did you mean 'TSFORMER_OPT__TOKENS__MAX_SIZE'?"),
        ("TSFORMER_OPT__SEED", "names no section; did you mean 'TSFORMER_OPT__TRAIN__SEED'?"),
        ("tsformer_opt__batch_size", "did you mean 'TSFORMER_OPT__TRAIN__BATCH_SIZE'?"),
        ("TSFORMER_OPT__HORIZON", "did you mean 'TSFORMER_OPT__WINDOW__HORIZON'?"),
        ("TSFORMER_OPT__TRAIN__HORIZON", "unknown option; 'horizon' belongs to window"),
        ("TSFORMER_OPT__PATH", "unknown section"),
        ("TSFORMER_OPT_MODEL__D_MODEL", "given as TSFORMER_OPT__MODEL__D_MODEL"),
        ("TSFORMER_OPTS__MODEL__D_MODEL", "given as TSFORMER_OPT__MODEL__D_MODEL"),
        ("TSFORMER__MODEL__D_MODEL", "given as TSFORMER_OPT__MODEL__D_MODEL"),
        ("TSFORMER_OPT", "given as TSFORMER_OPT__MODEL__D_MODEL"),
        ("TSFORMER_OPT__TRAIN", "names no option"),
        ("TSFORMER_OPT__MODEL__", "names no option"),
        ("TSFORMER_OPT__TRANSFORM__X", "TSFORMER_OPT__TRANSFORM__LOG__OPTION"),
        ("TSFORMER_OPT__TRANSFORM__LOG__X", "the transform 'log' is not in use"),
        ("TSFORMER_OPT__TRANSFORM__STANDARD__K", "unknown option"),
        ("TSFORMER_OPT__SCALE__K", "unknown option"),
        ("TSFORMER_OPT__TRAIN__LR", "input should be a valid number"),
    ],
)
def test_none_is_ignored_in_silence(variable, said):
    with pytest.raises(UsageError) as caught:
        settings({variable: "x"})
    (line,) = str(caught.value).splitlines()
    assert line.startswith(variable)
    assert said in line


def test_an_unknown_section_is_not_likened_by_the_prefix_that_all_have():
    with pytest.raises(UsageError) as caught:
        settings({"TSFORMER_OPT__PATH": "x"})
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "items"),
    [('[{"name": "asinh", "scale": 2}]', ['{"name": "asinh", "scale": 2}']), ('[1, null, "log"]', ["1", "null"])],
)
def test_transforms_are_named_by_words(text, items):
    with pytest.raises(UsageError) as caught:
        settings({"TSFORMER_OPT__TRANSFORM": text})
    lines = str(caught.value).splitlines()
    for line, item in zip(lines, items, strict=True):
        assert line.startswith(f"TSFORMER_OPT__TRANSFORM: the name of a transform is a word, not {item};")


def test_no_transform():
    file = Layer({"transform": [{"name": "log"}]}, "run.toml")
    assert settings({}, below=[file]).transforms != ()
    assert settings({"TSFORMER_OPT__TRANSFORM": "none"}, below=[file]).transforms == ()
    with pytest.raises(UsageError, match="TSFORMER_OPT__TRANSFORM: none goes without other transforms"):
        settings({"TSFORMER_OPT__TRANSFORM": "none,log"})
    with pytest.raises(UsageError, match="TSFORMER_OPT__TRANSFORM__NONE__K: the transform 'none' is not in use"):
        settings({"TSFORMER_OPT__TRANSFORM": "none", "TSFORMER_OPT__TRANSFORM__NONE__K": "3"})


def test_a_replaced_scaler_is_validated():
    transform = Layer({"transform": ["minmax"]})
    with pytest.raises(UsageError, match="TSFORMER_OPT__SCALE__LWO: unknown option"):
        settings({"TSFORMER_OPT__SCALE__LWO": "3"}, above=[FLAGS, transform])
    environment = {"TSFORMER_OPT__SCALE": "robust", "TSFORMER_OPT__SCALE__LOW": "10"}
    assert settings(environment, above=[FLAGS, transform]).scale is None
    with pytest.raises(UsageError, match=r"^TSFORMER_OPT__SCALE, TSFORMER_OPT__SCALE__LOW: no effect"):
        settings(environment, below=[transform])


@pytest.mark.parametrize("variable", ["TSFORMER_DEBUG", "TSFORMER_SERVER__PORT", "TRANSFORMER_OPT__X", "OPT__MODEL"])
def test_variables_of_others_are_left_alone(variable):
    assert settings({variable: "x"}) == resolve([FLAGS])


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_variable(text):
    with pytest.raises(UsageError, match="TSFORMER_OPT__TRAIN__LR is empty; give it a value, or unset it"):
        settings({"TSFORMER_OPT__TRAIN__LR": text})


def test_the_same_option_twice():
    with pytest.raises(UsageError, match="TSFORMER_OPT__MODEL and TSFORMER_OPT__MODEL__NAME give the same option"):
        settings({"TSFORMER_OPT__MODEL": "transformer", "TSFORMER_OPT__MODEL__NAME": "transformer"})


def test_faults_of_all_layers_at_once(tmp_path):
    (tmp_path / "run.toml").write_text("[modle]\n[train]\nlr = -1\n")
    file = read_file(str(tmp_path / "run.toml"))
    environment = {"TSFORMER_OPT__MODEL__DROPOUT": "2", "TSFORMER_OPT_X": "1"}
    with pytest.raises(UsageError) as caught:
        settings(environment, below=[file], above=[FLAGS, Layer({"train": {"epochs": "many"}})])
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        f"unknown section [modle] in {tmp_path}/run.toml; did you mean 'model'?",
        "TSFORMER_OPT_X",
        "TSFORMER_OPT__MODEL__DROPOUT",
        "--train.epochs",
        f"train.lr in {tmp_path}/run.toml",
    ]


def test_options_that_do_not_go_together_name_what_was_not_a_flag():
    with pytest.raises(UsageError, match=r"n_heads 4 does not divide d_model 65 \(TSFORMER_OPT__MODEL__D_MODEL\)"):
        settings({"TSFORMER_OPT__MODEL__D_MODEL": "65"})


def test_options_of_a_replaced_plugin_do_not_apply():
    environment = {"TSFORMER_OPT__MODEL": "tcn_transformer", "TSFORMER_OPT__MODEL__STRIDE": "4"}
    assert settings(environment).model.name == "transformer"
    environment = {"TSFORMER_OPT__TRANSFORM": "log", "TSFORMER_OPT__TRANSFORM__LOG__X": "4"}
    above = [FLAGS, Layer({"transform": ["log_return"]})]
    assert [chosen.name for chosen in settings(environment, above=above).transforms] == ["log_return"]
    with pytest.raises(UsageError, match="TSFORMER_OPT__MODEL__STRIDE: unknown option"):
        settings({"TSFORMER_OPT__MODEL__STRIDE": "4"})  # whatever model is used: it has no such option


def test_an_unknown_plugin_says_who_named_it():
    with pytest.raises(PluginError, match=r"did you mean 'transformer'.*\(named by TSFORMER_OPT__MODEL\)"):
        settings({"TSFORMER_OPT__MODEL": "transfomer"}, above=[Layer({"data": {"name": "sine"}})])
    with pytest.raises(PluginError, match=r"did you mean 'log'.*\(named by TSFORMER_OPT__TRANSFORM\)"):
        settings({"TSFORMER_OPT__TRANSFORM": "lag"})


def test_options_of_transforms_and_of_the_scaler(own_registry):
    register("Times", TransformPlugin(config=Options, build=lambda config: None, example=Options()))
    environment = {"TSFORMER_OPT__TRANSFORM": "Times", "TSFORMER_OPT__TRANSFORM__TIMES__K": "2"}
    assert settings(environment).transforms[0].config.k == 2
    environment = {"TSFORMER_OPT__SCALE": "Times", "TSFORMER_OPT__SCALE__K": "3"}
    resolved = trace([read_environment(environment), FLAGS])
    assert resolved.settings.scale.config.k == 3
    assert resolved.origins["scale"] == {"name": "TSFORMER_OPT__SCALE", "k": "TSFORMER_OPT__SCALE__K"}
    with pytest.raises(UsageError, match="TSFORMER_OPT__SCALE__K: input should be a valid number"):
        settings({"TSFORMER_OPT__SCALE": "Times", "TSFORMER_OPT__SCALE__K": "x"})


def test_origins():
    environment = {"TSFORMER_OPT__MODEL__D_MODEL": "64", "tsformer_opt__window__horizon": "7"}
    origins = trace([FILE, read_environment(environment), FLAGS, Layer({"train": {"lr": "1"}})]).origins
    assert origins["model"]["name"] == "--model"
    assert origins["model"]["d_model"] == "TSFORMER_OPT__MODEL__D_MODEL"
    assert origins["model"]["d_ff"] == "run.toml"
    assert origins["model"]["dropout"] == DEFAULT
    assert origins["window"] == {
        "horizon": "tsformer_opt__window__horizon",
        **dict.fromkeys(("lookback", "season", "stride"), FROM_DATA),
        "short": DEFAULT,
    }
    assert (origins["train"]["seed"], origins["train"]["lr"]) == ("run.toml", "--train.lr")


def test_python_is_explicit(monkeypatch):
    plain = Forecaster("transformer")._settings()
    monkeypatch.setenv("TSFORMER_OPT__MODEL__D_MODEL", "8")
    monkeypatch.setenv("TSFORMER_OPT__NONSENSE", "x")
    assert Forecaster("transformer")._settings() == plain
