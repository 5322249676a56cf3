"""Where the command line has its configuration from: files, the environment, flags; `tsformer config show`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_config_from_an_earlier_run(tsformer):
    out, _ = tsformer.fit_air("--horizon", "6", "--seed", "5")
    first = Path(out.strip())
    _, out, _ = tsformer("fit", "--config", first, "--json")
    again = Path(json.loads(out)["run"])
    assert (first / "model.safetensors").read_bytes() == (again / "model.safetensors").read_bytes()
    _, out, _ = tsformer("fit", "--config", first, "--seed", "6", "--out", "mine", "--quiet")
    assert out.strip() == "mine"
    assert Path("mine/model.safetensors").read_bytes() != (again / "model.safetensors").read_bytes()


def test_the_environment_is_between_file_and_flags(tsformer, monkeypatch):
    Path("run.toml").write_text("[model]\nname = 'transformer'\nd_model = 8\nd_ff = 8\n[data]\nname = 'sine'\n")
    monkeypatch.setenv("TSFORMER_OPT__MODEL__D_MODEL", "16")
    monkeypatch.setenv("TSFORMER_OPT__TRAIN__MAX_STEPS", "2")
    monkeypatch.setenv("TSFORMER_OPT__WINDOW__HORIZON", "5")
    code, out, err = tsformer("fit", "--config", "run.toml", "--horizon", "4", "--quiet")
    assert code == 0, err
    monkeypatch.setenv("TSFORMER_OPT__WINDOW__HORIZON", "3")
    monkeypatch.setenv("TSFORMER_OPT__MODLE", "x")
    assert len(tsformer("predict", out.strip())[1].splitlines()) == 5  # a run is what it was fitted as
    document = json.loads((Path(out.strip()) / "config.json").read_text())["settings"]
    assert (document["model"]["d_model"], document["model"]["d_ff"], document["window"]["horizon"]) == (16, 8, 4)
    code, _, err = tsformer("fit", "--config", "run.toml")
    assert code == 2
    assert "TSFORMER_OPT__MODLE: unknown section; did you mean 'TSFORMER_OPT__MODEL'?" in tsformer.one_line(err)


@pytest.mark.parametrize("where", ["file", "environment"])
@pytest.mark.parametrize("command", [("fit",), ("config", "show")])
def test_plugins_that_no_flag_names_have_their_options_too(tsformer, monkeypatch, where, command):
    monkeypatch.setenv("COLUMNS", "120")
    words = ()
    if where == "file":
        Path("run.toml").write_text("transform = ['log']\n[model]\nname = 'tcn_transformer'\n[data]\nname = 'csv'\n")
        words = ("--config", "run.toml")
    else:
        for name, text in (("MODEL", "tcn_transformer"), ("DATA", "csv"), ("TRANSFORM", "log")):
            monkeypatch.setenv(f"TSFORMER_OPT__{name}", text)
    code, out, err = tsformer(*command, *words, "--help")
    assert code == 0, err
    assert "--model.tcn-layers" in out
    assert "--path" in out
    code, out, err = tsformer("config", "show", *words, "--model.tcn-layers", "1", "--path", "x.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["settings"]["model"]["tcn_layers"] == 1


def test_show_tells_each_value_and_its_origin(tsformer, monkeypatch):
    Path("run.toml").write_text("[model]\nname = 'transformer'\nd_ff = 32\n[[transform]]\nname = 'log'\n")
    monkeypatch.setenv("TSFORMER_OPT__MODEL__D_MODEL", "16")
    code, out, err = tsformer("config", "show", "--config", "run.toml", "--data", "sine", "--lr", "1e-5")
    assert (code, err) == (0, "")
    lines = dict(re.split(r"\s+# ", line, maxsplit=1) for line in out.splitlines() if "  # " in line)
    assert lines["d_ff = 32"] == "run.toml"
    assert lines["d_model = 16"] == "TSFORMER_OPT__MODEL__D_MODEL"
    assert lines["lr = 1e-05"] == "--train.lr"
    assert lines["n_heads = 4"] == "default"
    assert lines["# horizon ="] == "chosen from the data"


WORDS = {
    "defaults": ("--model", "transformer", "--data", "sine"),
    "without data": ("--model", "tcn_transformer"),
    "transforms": ("--model", "transformer", "--data", "sine", "--transform", "log", "--transform", "log_return"),
    "a scaler in the chain": ("--model", "transformer", "--data", "sine", "--transform", "standard"),
    "a task": ("--model", "transformer", "--task=pretrain", "--tokens.max-size", "50", "--init-from", "a", "--freeze"),
    "no scaler": ("--model", "transformer", "--data", "sine", "--scale", "none", "--horizon", "3"),
    "lists": ("--model", "transformer", "--data", "sine", "--data.period", "60", "--data.period", "7.5"),
    "strange text": ("--model", "transformer", "--data", "csv", "--path", 'a "b"\\ \n\x7f\té.csv', "--target", "x#y"),
    "small numbers": ("--model", "transformer", "--data", "sine", "--lr", "1e-300", "--seed", str(2**63 - 1)),
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("json_too", [False, True])
def test_what_show_prints_is_a_configuration_file(tsformer, words, json_too):
    code, out, err = tsformer("config", "show", *words, *(["--json"] if json_too else []))
    assert code == 0, err
    file = Path("run.json" if json_too else "run.toml")
    file.write_text(out, encoding="utf-8")
    asked = json.loads(tsformer("config", "show", *words, "--json")[1])["settings"]
    again = json.loads(tsformer("config", "show", "--config", file, "--json")[1])["settings"]
    assert again == asked


def test_a_fit_from_what_show_printed_is_the_same_fit(tsformer):
    words = ("--model", "transformer", "--data", "csv", "--path", tsformer.air, "--transform", "log", *tsformer.fast)
    Path("run.toml").write_text(tsformer("config", "show", *words)[1])
    runs = [tsformer("fit", *given, "--quiet")[1].strip() for given in (words, ("--config", "run.toml"))]
    first, second = ((Path(run) / "model.safetensors").read_bytes() for run in runs)
    assert first == second


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--data", "sine"], 2, "no model: give --model NAME"),
        (["--model", "transfomer"], 5, "did you mean 'transformer'"),
        (["--model", "transformer", "--data", "csv"], 2, "--data.path is required"),
        (["--model", "transformer", "--lr", "x"], 2, "--train.lr"),
        (["--model", "transformer", "--out", "x"], 2, "--out"),
        (["--model", "transformer", "--task", "x"], 2, "unknown task 'x' (known: forecast, classify, "),
        (["--model", "transformer", "--data", "sine", "--task", "classify"], 2, "task classify: data 'sine' is for "),
        (["--model", "transformer", "--freeze"], 2, "--transfer: freeze and loaded_rate are for what was loaded"),
        (["--model", "transformer", "--freeze", "x"], 2, "--transfer.freeze: input should be a valid boolean"),
        (["--config", "nowhere.toml"], 2, "no configuration file"),
        (["--model", "transformer", "--config", ""], 2, "--config is empty"),
        (["--model", "transformer", "--config="], 2, "--config is empty"),
        (["--model", "transformer", "--scale", ""], 2, "--scale is empty"),
        (["--model", "transformer", "--scale", "", "--transform", "minmax"], 2, "--scale is empty"),
        (["--model", "transformer", "--transform", ""], 2, "--transform is empty"),
        (["--model", "transformer", "--data", ""], 2, "--data is empty"),
        (["--model", ""], 2, "--model is empty"),
        (["--model", "last_value", "--data", "csv", "--path", "x", "--target", ""], 2, "--data.target: the name of a"),
        (["--model", "last_value", "--data", "csv", "--path", "x", "--id", ""], 2, "--data.id: "),
        (["--model", "last_value", "--data", "csv", "--path", "x", "--time", ""], 2, "--data.time: "),
        (["--model", "last_value", "--data", "csv", "--path", ""], 2, "--data.path: "),
        (["--model", "li\nnear"], 5, r"unknown model 'li\nnear'; did you mean 'linear'"),
    ],
)
def test_faults_of_show(tsformer, words, code, said):
    got, out, err = tsformer("config", "show", *words)
    assert (got, out) == (code, "")
    assert said in tsformer.one_line(err)


def test_all_faults_of_a_line_beside_a_plugin_that_is_missing(tsformer):
    words = ("--model", "transfromer", "--data", "sine", "--model.d-model", "3", "--data.period", "4", "--lr", "abc")
    code, out, err = tsformer("config", "show", *words, "--data.period", "x", "--window.horizon=0")
    assert (code, out) == (5, "")
    starts = ["unknown model 'transfromer'; did you mean", "--data.period", "--window.horizon", "--train.lr"]
    lines = err.strip().splitlines()
    assert all(line.startswith(f"error: {start}") for line, start in zip(lines, starts, strict=True)), err
    code, _, err = tsformer("fit", *words[:2], "--data", "csv", "--train.lr", "abc", "--json")
    error = json.loads(tsformer.one_line(err))["error"]
    assert (code, error["kind"], error["exit_code"]) == (5, "plugin", 5)
    assert [line.split()[0] for line in error["message"].splitlines()] == ["unknown", "--data.path", "--train.lr:"]


def test_no_data_is_said_beside_a_model_that_is_missing(tsformer):
    assert "no data" in tsformer("fit", "--model", "transfromer")[2]
    assert "no data" not in tsformer("config", "show", "--model", "transfromer")[2]


def test_a_scaler_in_place_of_another_is_a_comment(tsformer):
    words = ("--model", "last_value", "--data", "sine")
    _, out, _ = tsformer("config", "show", *words, "--transform", "minmax")
    assert re.search(r"^# \[scale\] +# transform minmax takes its place$", out, re.MULTILINE)
    Path("run.toml").write_text(out)
    _, out, _ = tsformer("config", "show", "--config", "run.toml", "--transform", "none", "--json")
    settings = json.loads(out)["settings"]
    assert (settings["transform"], settings["scale"]) == ([], {"name": "standard"})
    code, out, err = tsformer("fit", *words, "--transform", "minmax", "--scale", "robust")
    assert (code, out) == (2, "")
    assert "--scale: no effect" in tsformer.one_line(err)


def test_the_scaler_has_its_options_without_other_plugins(tsformer):
    code, _, err = tsformer("config", "show", "--scale", "robust", "--transform.robust.low", "x")
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.splitlines()] == ["no model", "--transform.robust.low"]


def test_show_as_such_imports_no_torch():
    code = (
        "import sys\nfrom tsformer.cli.app import main\ntry:\n    main(['config', 'show', '--help'])\n"
        "except SystemExit as e:\n    assert e.code == 0\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("False\n"), done.stderr


def test_the_task_is_the_first_line_of_a_file(tsformer):
    code, out, err = tsformer("config", "show", "--model", "transformer", "--data", "sine")
    assert (code, err) == (0, "")
    assert re.fullmatch('task = "forecast" +# chosen from model and data', out.splitlines()[0])
    assert "[tokens]" in out
    assert "[transfer]" in out


def test_a_missing_plugin_hides_no_wrong_task(tsformer):
    code, _, err = tsformer("config", "show", "--model", "transformer", "--data", "sien", "--task", "x")
    assert code == 5
    assert "unknown data 'sien'" in err


@pytest.mark.parametrize("word", ["--tokens.tokenizer", "--init-from", "--freeze", "--task", "--train.class-weights"])
def test_help_has_the_general_options(tsformer, monkeypatch, word):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = tsformer("fit", "--help")
    assert code == 0
    assert word in out
    assert all(f"─ {panel} ─" in out for panel in ("Window", "Tokens", "Training", "Transfer"))
