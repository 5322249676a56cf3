"""Finding plugins: built-in, installed, local files, register(); what goes wrong breaks only itself."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from tsformer import Config, Field, ModelPlugin, entry_points, register, registry
from tsformer.errors import PluginError
from tsformer.registry import Kind


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_added", {})
    monkeypatch.setattr(registry, "_broken", {})


class Options(Config):
    lag: int = Field(1, gt=0, description="steps back")


PLUGIN = ModelPlugin(config=Options, build=lambda config, problem: None, example=Options())

LOCAL = """
from tsformer import Config, ModelPlugin

class Nothing(Config):
    pass

plugin = ModelPlugin(config=Nothing, build=lambda config, problem: None, example=Nothing())
"""


def test_built_in_plugins_are_listed():
    assert {"transformer", "tcn_transformer"} <= set(registry.entries(Kind.MODEL))
    assert {"sine", "csv"} <= set(registry.entries(Kind.DATA))
    assert {"standard", "log", "log_return"} <= set(registry.entries(Kind.TRANSFORM))


@pytest.mark.parametrize("kind", Kind)
def test_every_built_in_plugin_imports(kind):
    for name in registry.entries(kind):
        plugin = registry.get(kind, name)
        assert isinstance(plugin.example, plugin.config)


def test_listing_imports_no_plugin():
    code = (
        "import sys; from tsformer import registry; [registry.entries(k) for k in registry.Kind]; "
        "bad = {m for m in sys.modules if m.startswith(('torch', 'pandas', 'sklearn', 'tsformer_plugins.models.'))}; "
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_unknown_name_gets_a_hint():
    with pytest.raises(PluginError, match="did you mean 'transformer'"):
        registry.get(Kind.MODEL, "transfomer")


def test_name_of_another_kind_is_said():
    with pytest.raises(PluginError, match="there is a data plugin of that name"):
        registry.get(Kind.MODEL, "sine")


def test_register_and_register_again():
    register("mine", PLUGIN)
    assert registry.get(Kind.MODEL, "mine") is PLUGIN
    again = ModelPlugin(config=Options, build=lambda config, problem: None, example=Options())
    register("mine", again)  # running a notebook's cell twice
    assert registry.get(Kind.MODEL, "mine") is again


def test_built_ins_cannot_be_shadowed():
    with pytest.raises(PluginError, match=r"built-in and register\(\)"):
        register("transformer", PLUGIN)


def test_only_plugins_are_registered():
    with pytest.raises(PluginError, match="no plugin but Options"):
        register("mine", Options())


def test_local_file(tmp_path):
    file = tmp_path / "my_model.py"
    file.write_text(LOCAL)
    assert registry.load_file(file) == "my_model"
    assert registry.entries(Kind.MODEL)["my_model"].origin == "file my_model.py"
    assert isinstance(registry.get(Kind.MODEL, "my_model"), ModelPlugin)


def test_a_local_file_and_register_clash_and_break_only_that_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOCAL)
    register("mine", PLUGIN)
    registry.load_file(file)
    with pytest.raises(PluginError, match=r"2 model plugins are called 'mine': register\(\) and file mine.py; rename"):
        registry.get(Kind.MODEL, "mine")
    entry = registry.entries(Kind.MODEL)["mine"]
    assert entry.origin == "register() and file mine.py"
    assert entry.fault
    registry.get(Kind.MODEL, "transformer")


def test_register_after_a_local_file_is_refused_and_changes_nothing(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOCAL)
    registry.load_file(file)
    with pytest.raises(PluginError, match=r"file mine.py and register\(\)"):
        register("mine", PLUGIN)
    assert registry.get(Kind.MODEL, "mine") is not PLUGIN


def test_a_local_file_cannot_shadow_a_built_in(tmp_path):
    file = tmp_path / "transformer.py"
    file.write_text(LOCAL)
    registry.load_file(file)
    with pytest.raises(PluginError, match=r"'transformer': built-in and file transformer.py"):
        registry.get(Kind.MODEL, "transformer")


def test_two_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(LOCAL)
        registry.load_file(tmp_path / folder / "mine.py")
    with pytest.raises(PluginError, match=r"one.mine.py and .*two.mine.py"):
        registry.get(Kind.MODEL, "mine")


def test_a_file_loaded_again_replaces_itself(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOCAL)
    registry.load_file(file)
    first = registry.get(Kind.MODEL, "mine")
    registry.load_file(file)
    assert registry.get(Kind.MODEL, "mine") is not first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_that_name", r"ModuleNotFoundError: .*broken.py, line 1"),
        ("def f(:", r"SyntaxError: .*broken.py, line 1"),
        ("1 / 0", "ZeroDivisionError"),
        ("model = 1", "has no value named 'plugin'"),
        ("import sys\nsys.exit(3)", "SystemExit"),
        ("plugin = 3", r"'broken' \(file broken.py\) is no plugin but int; a plugin is a ModelPlugin"),
    ],
)
def test_a_broken_file_breaks_only_itself(tmp_path, text, said):
    file = tmp_path / "broken.py"
    file.write_text(text)
    registry.load_file(file)
    registry.get(Kind.MODEL, "transformer")
    assert "transformer" in registry.entries(Kind.MODEL)
    with pytest.raises(PluginError, match=said):
        registry.get(Kind.MODEL, "broken")
    assert "\n" not in registry.broken()["broken"]


def test_the_plugin_in_a_file_stays_unknown(tmp_path):
    file = tmp_path / "transformer.py"
    file.write_text(LOCAL)
    entry = registry.in_file(file)
    assert (entry.kind, entry.name, entry.origin) == (Kind.MODEL, "transformer", "file transformer.py")
    assert isinstance(registry.plugin_of(entry), ModelPlugin)
    assert registry.entries(Kind.MODEL)["transformer"].origin == "built-in"
    file.write_text("1 / 0")
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        registry.in_file(file)
    assert registry.broken() == {}


def test_missing_file():
    with pytest.raises(PluginError, match="no plugin file"):
        registry.load_file("nowhere.py")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x: int = Field(1)", "description"),
        ("name: str = Field('a', description='d')", "'name'"),
        pytest.param(
            "faults: int = Field(1, description='d')",
            "no option may be called 'faults'",
            marks=pytest.mark.filterwarnings("ignore:Field name"),
        ),
        ("a__b: int = Field(1, description='d')", "C.a__b: no option may have '__' in its name"),
        ("x: dict = Field({}, description='d')", "no type for an option"),
    ],
)
def test_a_config_that_no_command_line_can_show(tmp_path, body, said):
    file = tmp_path / "odd.py"
    file.write_text(f"from tsformer import Config, Field\nclass C(Config):\n    {body}\n")
    registry.load_file(file)
    assert said in registry.broken()["odd"]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """`installed(distribution, version, module, entry points)`: a package as an installer leaves it, on the path."""

    def install(name, version, points, text=LOCAL, folder="site", metadata="dist-info"):
        site = tmp_path / folder
        module = f"module_of_{name}".replace("-", "_")
        info = site / (
            f"{name.replace('-', '_')}-{version}.{metadata}" if metadata == "dist-info" else f"{name}.egg-info"
        )
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(text)
        file = "METADATA" if metadata == "dist-info" else "PKG-INFO"
        (info / file).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(points.format(module=module))
        if str(site) not in sys.path:
            monkeypatch.syspath_prepend(site)
        entry_points.declared.cache_clear()
        sys.modules.pop(module, None)
        return module

    yield install
    entry_points.declared.cache_clear()


def models(name):
    return f"[tsformer.models]\n{name} = {{module}}"


def test_an_installed_plugin_is_listed_without_its_import_and_found(installed):
    module = installed("their-models", "1.2", "[tsformer.models]\ntheirs = {module}\nalso = {module}:plugin")
    entry = registry.entries(Kind.MODEL)["theirs"]
    assert entry.origin == "their-models 1.2"
    assert module not in sys.modules
    assert registry.get(Kind.MODEL, "theirs") is registry.get(Kind.MODEL, "also")
    assert "theirs" not in registry.entries(Kind.DATA)


def test_an_installed_plugin_cannot_shadow_a_built_in(installed):
    installed("their-models", "1.2", models("transformer"))
    with pytest.raises(PluginError, match=r"'transformer': built-in and their-models 1\.2; rename or remove one"):
        registry.get(Kind.MODEL, "transformer")
    registry.get(Kind.MODEL, "tcn_transformer")
    with pytest.raises(PluginError, match=r"built-in and their-models 1\.2 and register"):
        register("transformer", PLUGIN)


def test_two_packages_with_one_name_name_both(installed, tmp_path):
    installed("their-models", "1.2", models("theirs"))
    installed("other-models", "0.3", models("theirs"), folder="other")
    with pytest.raises(PluginError, match=r"'theirs': (other-models 0\.3 and their-models 1.2|their.* and other.*)"):
        registry.get(Kind.MODEL, "theirs")
    file = tmp_path / "theirs.py"
    file.write_text(LOCAL)
    registry.load_file(file)
    with pytest.raises(PluginError, match=r"3 model plugins are called 'theirs': .* and .* and file theirs.py"):
        registry.get(Kind.MODEL, "theirs")


def test_a_package_seen_twice_is_no_clash(installed):
    """As development leaves it: an editable install beside the egg-info of an older one."""
    installed("their-models", "1.1", models("theirs"), folder="left", metadata="egg-info")
    installed("Their_Models", "1.2", models("theirs"))
    assert registry.entries(Kind.MODEL)["theirs"].origin == "Their_Models 1.2"
    registry.get(Kind.MODEL, "theirs")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_that_name", r"model 'theirs' \(their-models 1.2\) cannot be imported: ModuleNotFoundError"),
        ("raise KeyboardInterrupt.__base__('odd')", "cannot be imported: BaseException: odd"),
        ("model = 1", r"cannot be found: the entry point theirs = '\w+': .* has no attribute 'plugin'"),
        ("from module_of_their_models import nobody", r"cannot be imported: ImportError.*\(module_of_their_models.py"),
        ("import nobody.at_all", r"cannot be imported: ModuleNotFoundError.*\(module_of_their_models.py, line 1\)"),
        ("plugin = 1", "is no ModelPlugin but int"),
    ],
)
def test_an_installed_plugin_that_fails_breaks_only_itself(installed, text, said):
    installed("their-models", "1.2", models("theirs"), text)
    assert "theirs" in registry.entries(Kind.MODEL)
    registry.get(Kind.MODEL, "transformer")
    with pytest.raises(PluginError, match=said):
        registry.get(Kind.MODEL, "theirs")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{module}:nobody", "'module_of_their_models:nobody': module .* has no attribute 'nobody'$"),
        ("nowhere.at_all", r"'nowhere.at_all' names a module that is not there \(No module named 'nowhere'\)$"),
        ("{module}.more", "'module_of_their_models.more' names a module that is not there"),
        ("not a module", "'not a module' is neither a module nor module:value$"),
    ],
)
def test_an_entry_point_whose_value_is_wrong_is_named_as_it_is_written(installed, value, said):
    installed("their-models", "1.2", f"[tsformer.models]\ntheirs = {value}")
    with pytest.raises(PluginError, match=rf"'theirs' \(their-models 1.2\) cannot be found: .*theirs = {said}"):
        registry.get(Kind.MODEL, "theirs")


ODD_NAMES = ["a/b", "", "-x", "--plugin", "../evil", "weird name!", ".", "a\\b", "a:b"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_is_no_plain_word_cannot_be_used(installed, name):
    installed("their-models", "1.2", f"[tsformer.models]\n{name} = {{module}}\ngood-1.x_y = {{module}}")
    said = re.escape(f"model '{name}' (their-models 1.2) cannot be used: its name is no plain word")
    entry = registry.entries(Kind.MODEL)[name]
    assert re.match(said, entry.fault)
    with pytest.raises(PluginError, match=said):
        registry.get(Kind.MODEL, name)
    registry.get(Kind.MODEL, "good-1.x_y")
    with pytest.raises(PluginError, match="no plain word"):
        register(name, PLUGIN)


def test_a_file_whose_name_is_no_plain_word(tmp_path):
    file = tmp_path / "weird name!.py"
    file.write_text(LOCAL)
    registry.load_file(file)
    with pytest.raises(PluginError, match=r"'weird name!' .* no plain word"):
        registry.get(Kind.MODEL, "weird name!")


def test_none_is_no_name_for_a_transform(installed, tmp_path):
    text = (
        "from tsformer import Config, TransformPlugin\nclass C(Config):\n    pass\n"
        "plugin = TransformPlugin(config=C, build=lambda config: None, example=C())"
    )
    installed("their-transforms", "1.2", "[tsformer.transforms]\nnone = {module}", text)
    with pytest.raises(PluginError, match="--transform none means no transform"):
        registry.get(Kind.TRANSFORM, "none")
    file = tmp_path / "none.py"
    file.write_text(text)
    registry.load_file(file)
    assert "--transform none means no transform" in registry.broken()["none"]
    register("none", PLUGIN)  # of models


@pytest.fixture
def ctrl_c_elsewhere():
    """Ctrl-C ends the process at once, as on the command line."""
    before = signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    yield
    signal.signal(signal.SIGINT, before)


def test_a_plugin_that_raises_keyboardinterrupt_breaks_only_itself(installed, tmp_path, ctrl_c_elsewhere):
    """Where Ctrl-C does not raise it, the plugin did."""
    installed("their-models", "1.2", models("theirs"), "raise KeyboardInterrupt")
    with pytest.raises(PluginError, match=r"cannot be imported: KeyboardInterrupt: +\(module_of"):
        registry.get(Kind.MODEL, "theirs")
    file = tmp_path / "mine.py"
    file.write_text("raise KeyboardInterrupt")
    with pytest.raises(PluginError, match="cannot be imported: KeyboardInterrupt"):
        registry.in_file(file)


def test_ctrl_c_during_an_import_is_ctrl_c(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import signal\nsignal.raise_signal(signal.SIGINT)")
    with pytest.raises(KeyboardInterrupt):
        registry.load_file(file)


def test_the_place_of_an_error_is_in_the_package_not_in_what_it_calls(installed):
    module = installed("their-models", "1.2", models("theirs"), "import numpy\nnumpy.zeros(2, 'x')", "site-packages")
    sys.modules.pop(module, None)
    with pytest.raises(PluginError, match=rf"\({module}.py, line 2\)"):
        registry.get(Kind.MODEL, "theirs")


def test_a_package_whose_entry_points_cannot_be_read_breaks_only_itself(installed):
    installed("their-models", "1.2", "[tsformer.models]\nno equals sign")
    installed("other-models", "0.3", models("theirs"), folder="other")
    assert registry.entries(Kind.MODEL)["theirs"].origin == "other-models 0.3"
    assert "entry points of the package 'their-models' cannot be read" in registry.broken()["their-models"]


@pytest.mark.parametrize("heading", ["[tsformer.models", "[tsformer.model]", "[tsformer.transform]"])
def test_a_heading_that_is_misspelt_is_named(installed, heading):
    """Its plugins would be missing in silence."""
    installed("their-models", "1.2", f"{heading}\ntheirs = {{module}}")
    assert f"cannot be read: {heading} is none of [tsformer.models]," in registry.broken()["their-models"]


def test_entry_points_in_another_encoding_are_named(installed, tmp_path):
    installed("their-models", "1.2", models("theirs"))
    info = tmp_path / "site" / "their_models-1.2.dist-info"
    (info / "entry_points.txt").write_bytes("[tsformer.models]\nmodèle = x".encode("latin-1"))
    entry_points.declared.cache_clear()
    (line,) = registry.broken().values()
    assert "their_models-1.2.dist-info' cannot be read: they are not UTF-8" in line
    (info / "entry_points.txt").write_bytes("[somebody.else]\nmodèle = x".encode("latin-1"))
    entry_points.declared.cache_clear()
    assert registry.broken() == {}


def test_packages_that_have_lost_their_metadata_are_told_apart(installed, tmp_path):
    for number, name in enumerate(("their-models", "other-models")):
        installed(name, "1.2", models(f"model_{number}"))
        (tmp_path / "site" / f"{name.replace('-', '_')}-1.2.dist-info" / "METADATA").unlink()
    entry_points.declared.cache_clear()
    assert "transformer" in registry.entries(Kind.MODEL)
    found = [registry.entries(Kind.MODEL).get(f"model_{number}") for number in range(2)]
    said = [entry.origin for entry in found if entry] + list(registry.broken().values())
    assert len(said) == 2
    for name, line in zip(("their", "other"), sorted(said, key=lambda line: "other" in line), strict=True):
        assert f"{name}_models-1.2.dist-info" in line
        assert "None" not in line


PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "little-plugins"
version = "0.2"

[project.entry-points."tsformer.models"]
middle = "little_plugins.middle"

[project.entry-points."tsformer.data"]
steps = "little_plugins.steps:source"

[project.entry-points."tsformer.transforms"]
halved = "little_plugins.halved"
"""

MIDDLE = """
'''The mean of the past, learned up to a factor.'''
import torch
from torch import nn
from tsformer import Config, Field, ModelPlugin

class Options(Config):
    start: float = Field(1.0, description="first value of the factor")

class Middle(nn.Module):
    def __init__(self, config, problem):
        super().__init__()
        self.problem = problem
        self.factor = nn.Parameter(torch.tensor(config.start))

    def forward(self, batch, truth=0.0):
        real = batch.past_mask.sum(1).clamp_min(1)
        mean = torch.where(batch.past_mask, batch.past, 0.0).sum(1) / real
        return (self.factor * mean[:, None, : self.problem.targets, None]).expand(-1, self.problem.horizon, -1, -1)

plugin = ModelPlugin(config=Options, build=Middle, example=Options())
"""

STEPS = """
import numpy as np
import pandas as pd
from tsformer import Config, DataPlugin, Field, Panel
from tsformer.data.panel import Schema

class Options(Config):
    rows: int = Field(120, gt=0, description="rows")

def load(config):
    values = np.arange(config.rows, dtype=np.float64).reshape(-1, 1) % 7 + 1
    days = pd.date_range("2024-01-01", periods=config.rows)
    return Panel(values, np.array([0, config.rows]), days, ("steps",), Schema(("y",), time="day", frequency="D"))

source = DataPlugin(config=Options, load=load, example=Options())
"""

HALVED = """
from tsformer import Config, TransformPlugin

class Options(Config):
    pass

class Halved:
    pointwise, lost_rows = True, 0

    def fit(self, rows):
        return {}

    def forward(self, values, state):
        return values / 2

    def inverse(self, path, state, anchor):
        return path * 2

plugin = TransformPlugin(config=Options, build=lambda config: Halved(), example=Options())
"""


def test_a_package_of_plugins_is_built_installed_and_used(tmp_path):
    package, site, work = tmp_path / "package", tmp_path / "site", tmp_path / "work"
    (package / "little_plugins").mkdir(parents=True)
    work.mkdir()
    (package / "pyproject.toml").write_text(PYPROJECT)
    for name, text in {"__init__": "", "middle": MIDDLE, "steps": STEPS, "halved": HALVED}.items():
        (package / "little_plugins" / f"{name}.py").write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(package)], check=True, capture_output=True)

    def tsformer(*lines):
        """What each line prints, all in one fresh process."""
        environment = {**os.environ, "PYTHONPATH": str(site)}
        command = [sys.executable, "-c", LINES, *lines]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("=====\n")[:-1]

    (listed,) = tsformer("plugins list --json")
    rows = {(row["kind"], row["name"]): row["origin"] for row in json.loads(listed)["plugins"]}
    for plugin in (("model", "middle"), ("data", "steps"), ("transform", "halved")):
        assert rows[plugin] == "little-plugins 0.2"
    shown, run, forecast = tsformer(
        "plugins show middle",
        "fit --model middle --data steps --transform halved --model.start 0.5 --max-steps 2 --horizon 3",
        "predict",
    )
    assert "--model.start  FLOAT, default 1.0" in shown
    origins = json.loads((work / run.strip() / "config.json").read_text())["origins"]
    assert {origins[key] for key in ("model:middle", "data:steps", "transform:halved")} == {"little-plugins 0.2"}
    table = [line.split(",") for line in forecast.splitlines()]
    assert [row[0] for row in table] == ["day", "2024-04-30", "2024-05-01", "2024-05-02"]
    assert all(0 < float(row[1]) < 8 for row in table[1:])


LINES = """
import sys
from tsformer.cli.app import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as end:
        if end.code:
            raise
    print("=====")
"""
