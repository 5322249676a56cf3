"""The command line as such: words, errors of one line with the right exit code, streams."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_underscores_and_equals_signs(tsformer):
    code, _, err = tsformer(
        "fit", "--model=transformer", "--data=sine", "--model.d_model=16", "--max_steps", "2", "--quiet"
    )
    assert code == 0, err


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["predict", "--help"], ["plugins", "list"]])
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom tsformer.cli.app import main\ntry:\n    main(" + repr(words) + ")\nexcept SystemExit as e:\n"
        "    assert e.code == 0\n"
        "print('heavy:', {m for m in ('torch', 'pandas', 'sklearn', 'numpy') if m in sys.modules})"
    )
    done = run_python(code)
    assert done.stdout.endswith("heavy: set()\n"), done.stdout[-300:] + done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fit", "--model", "transfomer", "--data", "sine"], 5, "did you mean 'transformer'"),
        (["fit", "--model", "transformer", "--data", "sin"], 5, "did you mean 'sine'"),
        (["fit", "--model", "transformer"], 2, "no data: give --data"),
        (["fit", "--model", "transformer", "--data", "csv"], 2, "--data.path is required"),
        (["fit", "--model", "transformer", "--data", "sine", "--model.d-modle", "3"], 2, "--model.d-model"),
        (["fit", "--model", "transformer", "--data", "sine", "--lr", "fast"], 2, "--train.lr"),
        (["fit", "--model", "transformer", "--data", "csv", "--path", "air_pasengers"], 3, "air_passengers"),
        (["fit", "--model", "transformer", "--data", "sine", "--data.points", "50"], 3, "50 rows"),
        (["fit", "--model", "transformer", "--data", "sine", "--transform", "log"], 3, "not positive"),
        (["fit", "--model", "transformer", "--data", "sine", "--device", "cuda:7"], 7, "device 'cuda:7' is not there"),
        (["fit", "--plugin", "nowhere.py", "--model", "x", "--data", "sine"], 5, "no plugin file 'nowhere.py'"),
        (["fit", "--config", "nowhere.toml"], 2, "no configuration file"),
        (["fit", "--model", "transformer", "--data", "sine", "--plot", "x.txt"], 2, "must end in"),
        (["predict"], 4, "no complete run"),
        (["predict", "runs/none"], 4, "no run folder 'runs/none'"),
        (["predict", "~nobody-here/x"], 4, "no run folder"),
        (["predict", "x" * 5000], 4, "no run folder"),
        (["fit", "--config", "~nobody-here/x"], 2, "no configuration file"),
        (["fit", "--config", "x" * 5000], 2, "cannot be read"),
        (["fit", "--model", "transformer", "--data", "sine", "--horizon", "1" + "0" * 30], 2, "--window.horizon"),
        (["fit", "--model", "transformer", "--data", "sine", "--model.d-model", "1" + "0" * 12], 2, "--model.d-model"),
        (["fit", "--model", "transformer", "--data", "sine", "--device", "tpu"], 2, "--train.device"),
        (["plugins", "show", "csw"], 5, "did you mean 'csv'"),
        (["fitt"], 2, "fit"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None,
)
def test_errors_are_one_line_with_the_right_code(tsformer, words, code, said):
    got, out, err = tsformer(*words)
    assert (got, out) == (code, ""), err
    assert said in tsformer.one_line(err)
    assert tsformer.one_line(err).startswith("error: ")
    assert not Path("runs").exists()  # nothing is left behind


def test_all_faults_of_the_options_at_once(tsformer):
    code, _, err = tsformer(
        "fit", "--model", "transformer", "--data", "sine", "--lr", "x", "--model.dropout", "2", "--data.points", "0"
    )
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.strip().splitlines()] == [
        "--model.dropout",
        "--data.points",
        "--train.lr",
    ]


def test_errors_as_json(tsformer):
    code, out, err = tsformer("predict", "nowhere", "--json")
    assert (code, out) == (4, "")
    assert json.loads(err)["error"]["exit_code"] == 4
    assert json.loads(err)["error"]["kind"] == "run"


def test_stdout_that_takes_nothing(tsformer):
    tsformer.fit_air()
    for redirection, code in ((">/dev/full", "7"), (">&-", "7")):
        shell = f"{sys.executable} -m tsformer predict {redirection}; echo $? >&2"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
        *lines, got = done.stderr.strip().splitlines()
        assert got == code, done.stderr
        assert len([line for line in lines if line.startswith("error:")]) == 1, done.stderr
        assert "Traceback" not in done.stderr


def test_a_broken_pipe_is_silent(tsformer):
    tsformer.fit_air()
    shell = f"{sys.executable} -m tsformer predict | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env={**os.environ})
    assert done.stdout.strip() == "141"
    assert done.stderr == ""
