"""What the documentation shows is run as it stands."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tsformer import Forecaster, registry
from tsformer.config import resolve
from tsformer.config_layer import Layer, read_file
from tsformer.registry import Kind, entries
from tsformer.testing import MODEL_CHECKS

ROOT = Path(__file__).parent.parent


def blocks(file, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / file).read_text(), re.MULTILINE | re.DOTALL)


def shell_lines(file):
    return [line for block in blocks(file, "sh") for line in block.splitlines() if line.startswith("tsformer ")]


@pytest.fixture
def like_a_clone(in_tmp):
    shutil.copytree(ROOT / "datasets", in_tmp / "datasets")
    return in_tmp


def run(line):
    """A shell line with `tsformer` standing for this very installation."""
    command = f'tsformer() {{ "{sys.executable}" -m tsformer "$@"; }}; {line}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


def run_together(lines):
    """Plain lines one after another in one process, which imports everything once."""
    code = (
        "import shlex, sys\nfrom tsformer.cli.app import main\nfor line in sys.argv[1:]:\n    try:\n"
        "        main(shlex.split(line)[1:])\n    except SystemExit as end:\n        assert not end.code, line"
    )
    done = subprocess.run([sys.executable, "-c", code, *lines], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_readme_lines(like_a_clone):
    lines = shell_lines("README.md")
    assert len(lines) >= 7
    printed = [run(line) for line in lines]
    table = Path("forecast.csv").read_text().splitlines()
    assert table[0] == "month,passengers"
    assert [row.split(",")[0] for row in table[1:]] == [f"1961-{m:02}-01" for m in range(1, 13)]
    assert Path("forecast.png").stat().st_size > 10_000
    prices = next(text for text in printed if text.startswith("date,price")).splitlines()
    assert len(prices) == 11
    assert prices[1].startswith("2019-08-27,")


def test_readme_python(like_a_clone):
    (code,) = blocks("README.md", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "seasonal_naive" in done.stdout
    assert "1961-12-01" in done.stdout
    assert Path("air_run/manifest.json").is_file()


def test_the_references_python(in_tmp):
    (code,) = blocks("docs/reference.md", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["mae", "rmse", "mase", "smape", "windows"]
    assert sum(" north " in line for line in lines) == 7
    assert [line.split()[1:3] for line in lines[-3:]] == [["south", f"2024-07-{day}"] for day in (19, 20, 21)]
    assert Path("sales_run/manifest.json").is_file()


def test_the_reference_names_every_argument_of_forecaster():
    text = (ROOT / "docs/reference.md").read_text()
    table = text[text.index("| argument of `Forecaster`") :].partition("\n\n")[0]
    assert set(Forecaster().get_params()) <= set(re.findall(r"`(\w+)`", table))


def test_readme_names_every_plugin():
    text = (ROOT / "README.md").read_text()
    ours = [entry.name for kind in Kind for entry in entries(kind).values() if entry.origin == "built-in"]
    missing = [name for name in ours if f"`{name}`" not in text]
    assert not missing


def test_contributings_plugins(in_tmp):
    model, tests, *others = blocks("CONTRIBUTING.md", "python")
    plugins = dict(zip(("my_model", "my_data", "my_transform"), (model, *others), strict=True))
    for name, text in plugins.items():
        assert len(text.splitlines()) < 40
        Path(f"{name}.py").write_text(text)
    Path("test_my_model.py").write_text(tests)
    run_together(shell_lines("CONTRIBUTING.md"))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "."], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"{len(MODEL_CHECKS)} passed" in done.stdout


def test_contributings_package():
    (text,) = blocks("CONTRIBUTING.md", "toml")
    project = tomllib.loads(text)["project"]
    assert project["entry-points"] == {"tsformer.models": {"my_model": "my_plugins.my_model"}}
    assert set(project["entry-points"]) <= set(registry._GROUPS)


def test_the_configuration_file_of_the_reference(in_tmp):
    (text,) = blocks("docs/reference.md", "toml")
    Path("run.toml").write_text(text)
    settings = resolve([read_file("run.toml"), Layer({"train": {"seed": "3"}})])
    assert settings.data.config.target == ("price",)
    assert settings.train.max_steps == 200
    assert settings.train.seed == 3


def test_exit_codes_of_the_reference():
    from tsformer import errors

    text = (ROOT / "docs/reference.md").read_text()
    documented = set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE))
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.TsformerError)]
    assert {str(c.exit_code) for c in classes} <= documented


def test_contributing_names_every_module_at_the_top():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    modules = {file.stem for file in (ROOT / "tsformer").glob("[!_]*.py")}
    missing = [name for name in sorted(modules) if not re.search(rf"`(tsformer/)?{name}\.py`", text)]
    assert not missing
