"""Finding plugins: built-in, local files, register(); what goes wrong breaks only itself."""

import subprocess
import sys

import pytest

from tsformer import Config, Field, ModelPlugin, register, registry
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


def test_local_file_and_register_clash(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOCAL)
    register("mine", PLUGIN)
    with pytest.raises(PluginError, match=r"register\(\) and file mine.py"):
        registry.load_file(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_that_name", r"ModuleNotFoundError: .*broken.py, line 1"),
        ("def f(:", r"SyntaxError: .*broken.py, line 1"),
        ("1 / 0", "ZeroDivisionError"),
        ("model = 1", "has no value named 'plugin'"),
        ("import sys\nsys.exit(3)", "SystemExit"),
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


def test_missing_file():
    with pytest.raises(PluginError, match="no plugin file"):
        registry.load_file("nowhere.py")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x: int = Field(1)", "description"),
        ("name: str = Field('a', description='d')", "'name'"),
        ("x: dict = Field({}, description='d')", "no type for an option"),
    ],
)
def test_a_config_that_no_command_line_can_show(tmp_path, body, said):
    file = tmp_path / "odd.py"
    file.write_text(f"from tsformer import Config, Field\nclass C(Config):\n    {body}\n")
    registry.load_file(file)
    assert said in registry.broken()["odd"]
