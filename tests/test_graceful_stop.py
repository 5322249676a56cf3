"""A signal while a model is fitted by its own hook: there are no steps to finish, and it ends the process at once."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tsformer.cli import console

SLOW = """
import pathlib, time
from torch import nn
from tsformer import Config, ModelPlugin

class Options(Config):
    "None."

class Last(nn.Module):
    def __init__(self, problem):
        super().__init__()
        self.problem = problem

    def forward(self, batch, truth=0.0):
        return batch.past[:, -1:, : self.problem.targets, None].expand(-1, self.problem.horizon, -1, -1)

def fit(module, train, validation):
    pathlib.Path("fitting").touch()
    for _ in range(1000):
        time.sleep(0.1)

plugin = ModelPlugin(config=Options, build=lambda config, problem: Last(problem), fit=fit, example=Options())
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_a_fit_without_steps_ends_it_at_once(tsformer, number, code):
    Path("slow.py").write_text(SLOW)
    words = ("fit", "--plugin", "slow.py", "--model", "slow", "--data", "sine", "--out", "run", "--quiet")
    process = subprocess.Popen(
        [sys.executable, "-m", "tsformer", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not Path("fitting").exists() and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (code, "")
    assert tsformer.one_line(err) == f"stopped by {number.name}"
    assert not Path("run/manifest.json").exists()
    code, _, err = tsformer("predict", "run", "--plugin", "slow.py")
    assert code == 4
    assert "the fit did not end" in err


def test_only_who_asks_is_asked_to_stop(monkeypatch, capfd):
    """The first signal waits once training has asked; before that, and the second time, it does not."""

    def leave(number, frame):
        raise SystemExit(number)

    monkeypatch.setattr(console, "leave", leave)
    with pytest.raises(SystemExit), console.graceful_stop():
        signal.raise_signal(signal.SIGTERM)
    assert capfd.readouterr().err == ""
    with console.graceful_stop() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        assert stop.exit_code == 143
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
    assert capfd.readouterr().err.count("the best weights so far are being saved") == 1
