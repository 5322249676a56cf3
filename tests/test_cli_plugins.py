"""Plugins on the command line: local files, `plugins list` and `plugins show`."""

import json
import re
from pathlib import Path

import pytest


def test_a_local_model(tsformer):
    Path("my_model.py").write_text(tsformer.local_model)
    words = ("--model", "my_model", "--data", "sine", "--width", "4", "--max-steps", "3")
    code, _, err = tsformer("fit", "--plugin", "my_model.py", *words)
    assert code == 0, err
    assert tsformer("predict", "--plugin=my_model.py")[0] == 0
    code, out, _ = tsformer("--plugin", "my_model.py", "plugins", "show", "my_model")
    assert code == 0
    assert "--model.width, --width  INTEGER, default 8" in out


def test_a_run_of_a_local_model_names_the_file(tsformer, monkeypatch):
    from tsformer import registry

    Path("my_model.py").write_text(tsformer.local_model)
    tsformer("fit", "--plugin", "my_model.py", "--model", "my_model", "--data", "sine", "--max-steps", "2")
    monkeypatch.setattr(registry, "_added", {})
    code, _, err = tsformer("predict")
    assert code == 5
    assert "file my_model.py" in tsformer.one_line(err)


def test_a_broken_plugin_breaks_only_itself(tsformer):
    Path("broken.py").write_text("import nothing_of_that_name\n")
    code, out, err = tsformer("plugins", "list", "--plugin", "broken.py")
    assert code == 0
    assert "tcn_transformer" in out
    assert "broken.py" in tsformer.one_line(err)
    code, _, err = tsformer("fit", "--plugin", "broken.py", "--model", "transformer", "--data", "sine", *tsformer.fast)
    assert code == 0
    code, _, err = tsformer("fit", "--plugin", "broken.py", "--model", "broken", "--data", "sine")
    assert code == 5
    assert "ModuleNotFoundError" in tsformer.one_line(err)


def test_a_file_whose_plugin_is_none_breaks_only_itself(tsformer):
    Path("notplug.py").write_text("plugin = 3\n")
    code, out, err = tsformer("plugins", "list", "--plugin", "notplug.py")
    assert code == 0
    assert "tcn_transformer" in out
    assert "warning: 'notplug' (file notplug.py) is no plugin but int" in tsformer.one_line(err)
    code, _, err = tsformer("fit", "--plugin", "notplug.py", "--model", "notplug", "--data", "sine")
    assert code == 5
    assert "is no plugin but int" in tsformer.one_line(err)


def test_plugins_list_and_show(tsformer):
    code, out, _ = tsformer("plugins", "list", "--json")
    rows = {(row["kind"], row["name"]) for row in json.loads(out)["plugins"]}
    assert code == 0
    assert {("model", "transformer"), ("data", "csv"), ("transform", "log_return")} <= rows
    for _, name in rows:
        code, out, _ = tsformer("plugins", "show", name, "--json")
        for plugin in json.loads(out)["plugins"]:
            assert plugin["about"]
            assert all(option["description"] and option["type"] for option in plugin["options"])
    out = tsformer("plugins", "show", "csv")[1]
    assert "--data.path, --path  TEXT, required" in out


def test_what_a_plugin_prints_does_not_reach_stdout(tsformer):
    Path("loud.py").write_text(
        "print('import')\n" + tsformer.local_model.replace("past = torch", "print('go')\n        past = torch")
    )
    words = ("--plugin", "loud.py", "--model", "loud", "--data", "sine", "--max-steps", "2", "--json")
    code, out, err = tsformer("fit", *words)
    assert code == 0, err
    json.loads(out)
    assert "import" in err
    assert json.loads(tsformer("predict", "--plugin", "loud.py", "--json")[1])["horizon"] == 30
    assert json.loads(tsformer("plugins", "list", "--plugin", "loud.py", "--json")[1])["plugins"]


@pytest.mark.parametrize("flag", ["--out", "--lr", "--model", "--help"])
def test_a_flag_that_is_taken_is_refused(tsformer, flag):
    Path("taken.py").write_text(tsformer.local_model.replace("--width", flag))
    code, _, err = tsformer("fit", "--plugin", "taken.py", "--model", "taken", "--data", "sine")
    assert code == 5
    line = tsformer.one_line(err)
    assert f"the flag {flag} " in line
    assert "model taken (option width)" in line


def test_a_validator_that_fails_is_the_plugins_fault(tsformer):
    Path("strict.py").write_text(
        tsformer.local_model.replace(
            "from torch import nn", "from torch import nn\nfrom pydantic import field_validator"
        ).replace(
            "class Net",
            '    @field_validator("width")\n    def even(cls, value):\n        if value % 2:\n'
            '            raise RuntimeError("odd")\n        return value\n\nclass Net',
        )
    )
    words = ("--plugin", "strict.py", "--model", "strict", "--data", "sine", "--max-steps", "2")
    code, _, err = tsformer("fit", *words, "--width", "3")
    assert code == 5
    line = tsformer.one_line(err)
    assert "--model: the plugin fails in checking its options: RuntimeError: odd (strict.py, line " in line


def test_a_model_that_cannot_be_saved_leaves_its_score_only(tsformer):
    Path("brief.py").write_text(
        tsformer.local_model.replace("example=Options()", "example=Options(), persistent=False")
    )
    words = ("--plugin", "brief.py", "--model", "brief", "--data", "sine", "--max-steps", "2")
    code, out, _ = tsformer("fit", *words)
    assert code == 0
    assert not (Path(out.strip()) / "model.safetensors").exists()
    code, _, err = tsformer("predict", "--plugin", "brief.py")
    assert code == 4
    assert "cannot be saved" in tsformer.one_line(err)


def test_what_goes_with_a_plugin_by_task(tsformer):
    Path("broken.py").write_text("import nothing_of_that_name\n")
    (shown,) = json.loads(tsformer("plugins", "show", "ridge", "--plugin", "broken.py", "--json")[1])["plugins"]
    assert set(shown["goes_with"]) == {"forecast"}
    assert {"csv", "sine"} <= set(shown["goes_with"]["forecast"])
    out = tsformer("plugins", "show", "sine")[1]
    assert re.search("^forecast: with .*ridge", out, re.MULTILINE)
    (shown,) = json.loads(tsformer("plugins", "show", "log", "--json")[1])["plugins"]
    assert shown["goes_with"] == {}
