"""The run folder: complete or visibly incomplete, loads in a fresh process, refuses damage."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch

from tsformer import __version__, fitting, load, sources, weights
from tsformer import run as runs
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.errors import PluginError, ResourceError, RunError, UsageError
from tsformer.forecast import forecast
from tsformer.run_files import NEEDED, fingerprint

SMALL = {"model": {"name": "tcn_transformer", "d_model": "16", "d_ff": "32"}, "train": {"max_steps": 5}}


def fit_small(folder, **values):
    settings = resolve([Layer({**SMALL, "data": {"name": "sine", "points": "400", "noise": "0.1"}, **values})])
    panel = sources.load_data(settings.data)
    writer = runs.Writer(folder)
    result = fitting.fit(settings, panel, watch=fitting.Watch(start=writer.start, evaluation=writer.log))
    writer.finish(result.fitted, result.summary())
    return result, panel


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "a"
    return folder, *fit_small(folder, transform=["standard"])


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "copy")


def test_files_and_no_pickle(made):
    folder = made[0]
    assert {file.name for file in folder.iterdir()} == {
        "config.json",
        "transforms.json",
        "model.safetensors",
        "calibration.safetensors",
        "metrics.jsonl",
        "manifest.json",
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["metrics"]["test"]["windows"] > 0
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == 5
    assert lines[-1]["validation_loss"] > 0
    text = (folder / "config.json").read_text()
    assert "tsformer_plugins" not in text
    assert '"device": "auto"' in text


def test_a_loaded_run_forecasts_the_same(made):
    folder, result, panel = made
    fitted, summary = runs.load(folder)
    assert np.array_equal(forecast(fitted, panel).values, forecast(result.fitted, panel).values)
    assert fitted.problem == result.fitted.problem
    assert fitted.schema == result.fitted.schema
    assert fitted.settings == result.fitted.settings
    assert summary["metrics"] == result.metrics()


def test_loading_leaves_the_random_state(made):
    before = torch.random.get_rng_state()
    runs.load(made[0])
    assert torch.equal(before, torch.random.get_rng_state())


def test_it_loads_in_a_fresh_process(made):
    folder, result, panel = made
    code = (
        "import sys, tsformer; f = tsformer.load(sys.argv[1]);"
        "print(repr(f.predict(tsformer.read('sine', points=400, noise=0.1))['value'].tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(
        json.loads(done.stdout), forecast(result.fitted, panel).values[0, :, 0], rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("name", NEEDED)
def test_one_flipped_bit_is_refused(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(RunError, match=f"{name}' is damaged"):
        runs.load(folder)


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(RunError, match=f"{name}' is missing"):
        runs.load(folder)


def test_without_a_manifest_it_is_incomplete(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(RunError, match="not a complete run"):
        runs.load(folder)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"min_reader": "x"}', "[" * 100_000, "\x00"])
def test_a_broken_manifest_is_refused(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(RunError):
        runs.load(folder)


def test_a_manifest_without_a_status_is_refused(folder):
    rewrite(folder, lambda config, manifest: manifest.pop("status"))
    with pytest.raises(RunError, match="has no status"):
        runs.load(folder)


def rewrite(folder, change):
    """Change config.json so that its sha256 fits: what a newer or another version might have written."""
    config, manifest = (json.loads((folder / name).read_text()) for name in ("config.json", "manifest.json"))
    change(config, manifest)
    content = json.dumps(config).encode()
    (folder / "config.json").write_bytes(content)
    manifest["files"]["config.json"] = fingerprint(content)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_newer_format_is_refused(folder):
    rewrite(folder, lambda config, manifest: manifest.update(min_reader=99, written_by="tsformer 9.9"))
    with pytest.raises(RunError, match=r"needs a newer tsformer \(it was written by 'tsformer 9.9'"):
        runs.load(folder)


def test_the_format_before_this_one_is_read(made, folder):
    def written_then(config, manifest):
        for new in ("task", "tokens", "transfer"):
            del config["settings"][new]
        for new in ("pooling", "chunk", "chunk_stride", "upper_layers", "tie_embeddings"):
            del config["settings"]["model"][new]
        for new in ("bucketing", "label_smoothing", "class_weights", "hidden_share", "hidden_span"):
            del config["settings"]["train"][new]
        del config["problem"]["text_length"], config["schema"]["text"]
        config["settings"]["model"]["revin"] = True
        manifest.update(format=2, min_reader=2)

    rewrite(folder, written_then)
    fitted, _ = runs.load(folder)
    assert np.array_equal(forecast(fitted, made[2]).values, forecast(made[1].fitted, made[2]).values)
    assert fitted.problem == made[1].fitted.problem


NEW_IN_4 = ("id_columns", "static_covariates", "calendar", "holidays", "time_columns", "decimal")


def test_a_run_on_a_file_of_the_format_before_this_one_is_read(tsformer, in_tmp):
    tsformer.fit_air("--out", "run")
    before = tsformer("predict", "run")[1]

    def written_then(config, manifest):
        data = {"name": "csv", "path": config["settings"]["data"]["path"], "target": [], "time": None, "id": None}
        config["settings"]["data"] = {**data, "text": None, "sep": ",", "decimal": ".", "encoding": "utf-8-sig"}
        config["settings"]["data"]["time_format"] = None
        del config["settings"]["window"]["short"]
        for new in NEW_IN_4:
            config["schema"].pop(new, None)
        manifest.update(format=3, min_reader=3)

    rewrite(in_tmp / "run", written_then)
    code, out, err = tsformer("predict", "run")
    assert (code, out) == (0, before), err


def static(values):
    """The sine as two series, each with a region of its own."""
    panel = sources.read("sine", points=400)
    schema = replace(panel.schema, id="id", static_covariates=("region", "size"))
    table = pd.DataFrame({"region": values, "size": [1.0, 2.0]})
    return replace(panel, offsets=np.array([0, 200, 400]), ids=("a", "b"), schema=schema, static=table)


@pytest.fixture
def with_statics(tmp_path):
    settings = resolve([Layer({**SMALL, "window": {"lookback": 24, "horizon": 4}})], needs_data=False)
    writer = runs.Writer(tmp_path / "statics")
    result = fitting.fit(settings, static(["south", "north"]), watch=fitting.Watch(start=writer.start))
    writer.finish(result.fitted, result.summary())
    return tmp_path / "statics", result.fitted


def test_static_covariates_are_kept(with_statics):
    folder, fitted = with_statics
    assert "statics.json" in json.loads((folder / "manifest.json").read_text())["files"]
    again, _ = runs.load(folder)
    assert again.statics == fitted.statics
    assert again.problem.static_cardinalities == (3,)
    for values in (["south", "north"], ["north", "elsewhere"]):
        panel = static(values)
        assert np.array_equal(forecast(again, panel).values, forecast(fitted, panel).values)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda statics: statics["words"].clear(), "are not those that were learned from"),
        (lambda statics: statics["words"]["region"].append("west"), "another number of static covariates"),
        (lambda statics: statics["scales"]["size"].clear(), "is not the static covariates of a run"),
    ],
)
def test_static_covariates_that_do_not_fit_are_refused(with_statics, change, said):
    folder, _ = with_statics
    statics, manifest = (json.loads((folder / name).read_text()) for name in ("statics.json", "manifest.json"))
    change(statics)
    content = json.dumps(statics).encode()
    (folder / "statics.json").write_bytes(content)
    manifest["files"]["statics.json"] = fingerprint(content)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=said):
        runs.load(folder)


def test_an_older_format_is_refused_and_its_options_go_on(tsformer, in_tmp):
    tsformer.fit_air("--out", "old run")
    old = in_tmp / "old run"
    weights_of = safetensors.torch.load((old / "model.safetensors").read_bytes())
    renamed = safetensors.torch.save({name.replace("inner", "0"): tensor for name, tensor in weights_of.items()})
    (old / "model.safetensors").write_bytes(renamed)

    def change(config, manifest):
        config["format"] = manifest["format"] = manifest["min_reader"] = 1
        manifest["files"]["model.safetensors"] = fingerprint(renamed)

    rewrite(old, change)
    code, _, err = tsformer("predict", "old run")
    assert code == RunError.exit_code
    assert tsformer.one_line(err).endswith(
        f"'old run' is from an older version (it was written by 'tsformer {__version__}', format 1; this one reads "
        "format 2): "
        "fit again with its options, tsformer fit --config 'old run'"
    )
    code, out, err = tsformer("fit", "--config", "old run", "--out", "new")
    assert (code, out.strip()) == (0, "new"), err
    kept = [json.loads((folder / "config.json").read_text())["settings"] for folder in (old, in_tmp / "new")]
    assert kept[0] == kept[1]
    runs.load(in_tmp / "new")


def test_a_plugin_that_is_not_here_is_named(folder):
    def change(config, manifest):
        config["settings"]["model"] = {"name": "my_model"}
        config["origins"] = {"model:my_model": "file my_model.py"}

    rewrite(folder, change)
    with pytest.raises(PluginError, match=r"unknown model 'my_model'.*file my_model.py.*--plugin"):
        runs.load(folder)


def test_a_plugin_of_the_same_name_from_elsewhere_is_noted(tsformer, in_tmp):
    (in_tmp / "pool.py").write_text(tsformer.local_model)
    words = ("--plugin", "pool.py", "--model", "pool", "--data", "sine", "--max-steps", "1", "--horizon", "3")
    code, _, err = tsformer("fit", *words, "--out", "run")
    assert code == 0, err
    code, _, err = tsformer("predict", "run", "--plugin", "pool.py")
    assert code == 0, err
    assert "note:" not in err
    assert not runs.other_plugins(in_tmp / "run", runs.load(in_tmp / "run")[0])
    rewrite(in_tmp / "run", lambda config, manifest: config["origins"].update({"model:pool": "my-plugins 1.0"}))
    code, _, err = tsformer("predict", "run", "--plugin", "pool.py")
    line = (
        "the run was made with the 'model pool' of my-plugins 1.0, and now there is that of file pool.py; "
        "its forecasts may differ"
    )
    assert code == 0
    assert f"note: {line}" in err.splitlines()
    with pytest.warns(UserWarning, match=f"^{line}$"):
        load(in_tmp / "run")


@pytest.mark.parametrize("part", ["settings", "problem", "schema"])
def test_a_configuration_that_is_none_is_refused(folder, part):
    rewrite(folder, lambda config, manifest: config.update({part: {"nonsense": 1}}))
    with pytest.raises(RunError):
        runs.load(folder)


def test_weights_that_do_not_fit_are_refused(folder):
    rewrite(folder, lambda config, manifest: config["settings"]["model"].update(d_model=32))
    with pytest.raises(RunError, match="do not fit the model"):
        runs.load(folder)


def test_an_existing_folder_is_not_overwritten(made, folder):
    before = (folder / "config.json").read_bytes()
    with pytest.raises(UsageError, match="not an empty folder"):
        runs.Writer(folder).start(made[1].fitted)
    assert (folder / "config.json").read_bytes() == before


def test_of_two_fits_into_an_empty_folder_one_gets_it(made, tmp_path, monkeypatch):
    runs.Writer(tmp_path / "run").start(made[1].fitted)
    monkeypatch.setattr(runs.Path, "iterdir", lambda self: iter(()))  # the second looked before the first wrote
    with pytest.raises(UsageError, match="not an empty folder"):
        runs.Writer(tmp_path / "run").start(made[1].fitted)


def test_a_place_that_cannot_be_written_to(made, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResourceError, match="cannot write to"):
        runs.Writer(tmp_path / "file" / "run").start(made[1].fitted)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("problem", "lookback", -1),
        ("problem", "horizon", "x"),
        ("problem", "targets", 2),
        ("problem", "season", 1.5),
        ("problem", "past_covariates", 10**30),
        ("schema", "targets", [3]),
        ("schema", "frequency", [1]),
        ("schema", "frequency", "XX"),
        ("schema", "frequency", -1.0),
        ("schema", "time_format", "%Q"),
        ("schema", "time_format", "%m"),
        ("schema", "zone", "Mars/X"),
        ("settings", "model", {"name": "tcn_transformer", "d_model": 10**9}),
    ],
)
def test_values_of_the_wrong_kind_are_refused(folder, part, name, value):
    rewrite(folder, lambda config, manifest: config[part].update({name: value}))
    with pytest.raises(RunError):
        runs.load(folder)


@pytest.mark.parametrize("state", ["x", [], {}, [{"mean": [np.nan], "scale": [1.0]}], [{}], [[], []], None])
def test_states_of_the_wrong_kind_are_refused(folder, state):
    content = json.dumps({"": state}).encode()
    (folder / "transforms.json").write_bytes(content)
    rewrite(folder, lambda config, manifest: manifest["files"].update({"transforms.json": fingerprint(content)}))
    if state == [{}]:  # as many states as transforms, though not what they need: found when it is used
        runs.load(folder)
    else:
        with pytest.raises(RunError):
            runs.load(folder)


def test_the_latest_run_is_the_newest_complete_one(in_tmp, made):
    with pytest.raises(RunError, match="no complete run"):
        runs.find("latest")
    for name in ("b", "a"):  # the newest is not the last by name
        shutil.copytree(made[0], in_tmp / "runs" / name, copy_function=shutil.copyfile)
    (in_tmp / "runs" / "z").mkdir()
    assert runs.find("latest") == runs.find(None)
    assert runs.find("latest").name == "a"


def test_tied_weights_are_stored_once_and_come_back():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.b.weight = self.a.weight

    stored = weights.save(Tied())
    tensors = safetensors.torch.load(stored)
    assert set(tensors) == {"a.weight", "a.bias", "b.bias"}
    module = Tied()
    weights.load(module, stored)
    assert torch.equal(module.b.weight, tensors["a.weight"])
    assert module.b.weight is module.a.weight
    for broken in (b"", stored[:-1], b"x" * 100):
        with pytest.raises(ValueError, match=r"\w"):
            weights.load(module, broken)


def test_same_seed_same_bytes(tmp_path):
    for name in ("a", "b"):
        fit_small(tmp_path / name)
    fit_small(tmp_path / "c", train={"max_steps": 5, "seed": 1})
    first, second, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert first == second
    assert first != other
