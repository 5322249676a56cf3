"""What the documentation shows is run as it stands."""

import re
import shutil
import subprocess
import sys
import tomllib
from itertools import groupby
from pathlib import Path

import pytest

from tsformer import Classifier, Forecaster, registry
from tsformer.config import resolve
from tsformer.config_layer import Layer, read_file
from tsformer.pairing import partners
from tsformer.plugin import Task, option_flag
from tsformer.registry import Kind, entries
from tsformer.settings import TokensConfig, TransferConfig
from tsformer.testing import MODEL_CHECKS

ROOT = Path(__file__).parent.parent


def blocks(file, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / file).read_text(), re.MULTILINE | re.DOTALL)


def shell_lines(file, section=None):
    """The lines of all blocks, or those below one heading."""
    text = (ROOT / file).read_text()
    if section is not None:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        assert text, f"{file} has no section {section}"
    found = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in found for line in block.splitlines() if line.startswith("tsformer ")]


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
    return done.stdout


SEQUENCES = "Texts, labels and sequences"


def test_readme_lines(like_a_clone):
    lines = [line for line in shell_lines("README.md") if line not in shell_lines("README.md", SEQUENCES)]
    assert len(lines) >= 7
    printed = "".join(
        "".join(map(run, group)) if redirected else run_together(group)
        for redirected, group in groupby(lines, lambda line: ">" in line)
    )
    table = Path("forecast.csv").read_text().splitlines()
    assert table[0] == "month,passengers"
    assert [row.split(",")[0] for row in table[1:]] == [f"1961-{m:02}-01" for m in range(1, 13)]
    assert Path("forecast.png").stat().st_size > 10_000
    prices = re.findall(r"^(\d{4}-\d\d-\d\d),\d", printed.partition("date,price\n")[2], re.MULTILINE)
    assert len(prices) == 10
    assert prices[0] == "2019-08-27"


def test_the_lines_about_texts_and_labels(like_a_clone):
    lines = shell_lines("README.md", SEQUENCES) + shell_lines("docs/texts_and_classes.md")
    assert len(lines) == 7
    run_together(lines)
    answers = Path("labels.csv").read_text().splitlines()
    assert answers[0] == "review,sentiment,probability"
    assert len(answers) == 241
    files = {file.name for run in Path("runs").iterdir() for file in run.iterdir()}
    assert files >= {"vocabulary.json", "confusion.csv", "confusion.png", "report.csv"}


def test_the_lines_about_intervals(like_a_clone):
    run_together(shell_lines("docs/intervals.md"))
    ends = [f"passengers_{end}" for end in ("lo_80", "hi_80", "lo_95", "hi_95")]
    assert Path("intervals.csv").read_text().splitlines()[0] == ",".join(["month", "passengers", *ends])
    assert len(Path("paths.csv").read_text().splitlines()) == 1 + 50 * 12
    assert Path("intervals.png").stat().st_size > 10_000


def test_readme_python_for_labels(like_a_clone):
    code, _ = blocks("README.md", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    accuracy, probabilities = done.stdout.splitlines()
    assert 0.6 < float(accuracy) <= 1
    assert probabilities.count(" ") >= 1
    assert Path("review_run/vocabulary.json").is_file()


def test_readme_python(like_a_clone):
    _, code = blocks("README.md", "python")
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
    assert lines[0].split()[:2] == ["mae", "rmse"]
    assert sum(" north " in line for line in lines) == 7
    assert [line.split()[1:3] for line in lines[-3:]] == [["south", f"2024-07-{day}"] for day in (19, 20, 21)]
    assert Path("sales_run/manifest.json").is_file()


@pytest.mark.parametrize(
    ("file", "estimator"), [("docs/reference.md", Forecaster), ("docs/texts_and_classes.md", Classifier)]
)
def test_every_argument_of_an_estimator_is_documented(file, estimator):
    text = (ROOT / file).read_text()
    table = text[text.index(f"| argument of `{estimator.__name__}`") :].partition("\n\n")[0]
    assert set(estimator().get_params()) <= set(re.findall(r"`(\w+)`", table))


def test_every_option_of_tokens_and_transfer_is_documented():
    text = (ROOT / "docs/texts_and_classes.md").read_text()
    flags = [
        f"--{section}.{name}".replace("_", "-")
        for section, config in (("tokens", TokensConfig), ("transfer", TransferConfig))
        for name, field in config.model_fields.items()
        if option_flag(field) is None
    ]
    new = ["--train.label-smoothing", "--train.class-weights", "--train.hidden-share", "--train.hidden-span"]
    new += ["--train.bucketing", "--init-from", "--freeze", "--beam"]
    new += [f"--model.{name}" for name in ("pooling", "chunk", "chunk-stride", "upper-layers", "tie-embeddings")]
    assert [flag for flag in flags + new if flag not in text] == []


def test_the_table_of_tasks_names_every_plugin_of_a_task():
    text = (ROOT / "docs/texts_and_classes.md").read_text()
    for task in (Task.CLASSIFY, Task.SEQUENCE):
        (row,) = re.findall(rf"^\| `{task}` \|.*$", text, re.MULTILINE)
        names = {name for kind in (Kind.MODEL, Kind.DATA) for name in partners(kind, {task})[task.value]}
        assert names == set(re.findall(r"`(\w+)`", row)) - {task.value}


def test_links_between_the_documents_lead_somewhere():
    names = ("reference", "tables", "texts_and_classes", "intervals", "ensembles", "evaluation", "tuning")
    pages = [f"docs/{name}.md" for name in names]
    for file in ("README.md", "CONTRIBUTING.md", *pages):
        folder = (ROOT / file).parent
        for target, anchor in re.findall(r"\]\(([\w./]*)(?:#([\w-]+))?\)", (ROOT / file).read_text()):
            assert (folder / target).exists(), f"{file}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", (folder / target).read_text(), re.MULTILINE)
                assert anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}, anchor


def test_the_lines_about_evaluation(like_a_clone):
    out = run_together(shell_lines("docs/evaluation.md"))
    assert out.count("\nseasonal_naive,") == 1 + 12 + 3  # evaluate, by horizon, and backtests
    assert "\nwide," in out
    (code,) = blocks("docs/evaluation.md", "python")
    exec(code, found := {})
    assert set(found["found"].leaderboard.model) >= {"ridge", "mean", "last_value", "seasonal_naive"}


def test_what_is_said_of_tuning(like_a_clone):
    lines = shell_lines("docs/tuning.md")
    assert len(lines) == 4
    run_together(lines)
    assert tomllib.loads(Path("best.toml").read_text())["model"]["name"] == "linear"
    assert len(Path("ridge.study").read_text().splitlines()) == 1 + 4
    (code,) = blocks("docs/tuning.md", "python")
    exec(code, found := {})
    assert len(found["found"].trials) == 3


def test_what_is_said_of_ensembles(like_a_clone):
    lines = shell_lines("docs/ensembles.md")
    assert len(lines) == 3
    run_together(lines)
    (text,) = blocks("docs/ensembles.md", "toml")
    Path("ensemble.toml").write_text(text)
    settings = resolve([read_file("ensemble.toml")], needs_data=False)
    assert [member.lookback for member in settings.model.members] == [512, 336]
    (code,) = blocks("docs/ensembles.md", "python")
    exec(code, found := {})
    assert len(found["forecaster"]._settings().model.members) == 2


def test_readme_names_every_plugin():
    text = (ROOT / "README.md").read_text()
    ours = [entry.name for kind in Kind for entry in entries(kind).values() if entry.origin == "built-in"]
    missing = [name for name in ours if f"`{name}`" not in text]
    assert not missing


def test_contributings_plugins(in_tmp):
    model, tests, *others = blocks("CONTRIBUTING.md", "python")
    names = ("my_model", "my_classifier", "my_data", "my_texts", "my_transform")
    plugins = dict(zip(names, (model, *others), strict=True))
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
