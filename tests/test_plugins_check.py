"""`plugins list --check` and `plugins check`: what works, what does not, and why."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DOUBLE = """
print("imported")
from tsformer import Config, TransformPlugin

class Options(Config):
    pass

class Double:
    pointwise, lost_rows = True, 0

    def fit(self, rows):
        print("fitted")
        return {}

    def forward(self, values, state):
        return 2 * values

    def inverse(self, path, state, anchor):
        return path / 2

plugin = TransformPlugin(config=Options, build=lambda config: Double(), example=Options())
"""


@pytest.fixture
def double(tsformer):
    """Writes the plugin above, or a spoiled one, into double.py."""

    def write(old="", new="", name="double"):
        assert old in DOUBLE
        Path(f"{name}.py").write_text(DOUBLE.replace(old, new) if old else DOUBLE)

    return write


def test_list_check_shows_the_tasks_of_every_plugin(tsformer):
    code, out, err = tsformer("plugins", "list", "--check")
    assert code == 0, out
    lines = [line.split() for line in out.splitlines()]
    assert ["model", "last_value", "built-in", "forecast"] in lines
    assert ["model", "transformer", "built-in", "classify,", "forecast,", "pretrain,", "sequence"] in lines
    assert ["transform", "log", "built-in", "ok"] in lines
    assert err == ""
    rows = json.loads(tsformer("plugins", "list", "--check", "--json")[1])["plugins"]
    assert all(row["fault"] is None for row in rows)
    assert {
        "kind": "data",
        "name": "sine",
        "origin": "built-in",
        "tasks": ["forecast", "pretrain"],
        "fault": None,
    } in rows


def test_list_says_whose_names_clash_and_goes_on(tsformer, double):
    double(name="log")
    code, out, err = tsformer("plugins", "list", "--plugin", "log.py")
    assert code == 0
    assert "built-in and file log.py" in out
    assert "transform  standard" in out
    assert "warning: 2 transform plugins are called 'log': built-in and file log.py; rename or remove one" in err
    code, out, err = tsformer("plugins", "list", "--check", "--plugin", "log.py")
    assert code == 5
    assert "broken: 2 transform plugins are called 'log'" in out
    rows = json.loads(tsformer("plugins", "list", "--check", "--json", "--plugin", "log.py")[1])["plugins"]
    assert [row["name"] for row in rows if row["fault"]] == ["log"]
    code, _, err = tsformer("plugins", "show", "log", "--plugin", "log.py")
    assert code == 5
    assert "built-in and file log.py" in tsformer.one_line(err.replace("imported\n", ""))


def test_list_check_says_which_file_does_not_import(tsformer):
    Path("broken.py").write_text("import nothing_of_that_name")
    code, out, err = tsformer("plugins", "list", "--check", "--plugin", "broken.py")
    assert code == 5
    assert "transformer" in out
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name' (broken.py, line 1)" in tsformer.one_line(err)


def test_check_a_file(tsformer, double):
    double()
    code, out, err = tsformer("plugins", "check", "double.py")
    assert code == 0, out
    lines = out.splitlines()
    assert lines[0] == "transform double (file double.py)"
    skipped = [line.split()[1] for line in lines[1:] if line.startswith("  skip  ")]
    assert skipped == ["missing", "scaler"]
    assert all(line.startswith(("  ok    ", "  skip  ")) for line in lines[1:])
    assert err.endswith("double: 10 checks passed, 2 skipped\n")
    assert "fitted" in err  # what a plugin prints is no data
    assert tsformer("plugins", "check", "double", "--plugin", "double.py")[0] == 0


def test_check_says_what_fails_and_why(tsformer, double):
    double("return path / 2", "return path")
    code, out, err = tsformer("plugins", "check", "double.py")
    assert code == 5
    failed = next(line for line in out.splitlines() if line.startswith("  FAIL"))
    assert failed.split()[1] == "inverse"
    assert "random values: inverse(forward(x)) is off by" in failed
    assert "double: 8 checks passed, 2 failed, 2 skipped" in err
    assert "Traceback" not in err


def test_check_tells_an_error_with_its_place(tsformer, double):
    double("return 2 * values", "return 2 * values[0][99]")
    code, out, _ = tsformer("plugins", "check", "double.py", "--json")
    assert code == 5
    (plugin,) = json.loads(out)["plugins"]
    first, *others = plugin["checks"]
    assert not plugin["passed"]
    assert first["check"] == "check_shapes"
    assert first["explanation"].startswith("IndexError: ")
    assert first["explanation"].endswith("(double.py, line 16)")
    assert all(check["passed"] is None for check in others)


def test_an_error_within_a_library_is_told_with_the_place_that_called_it(tsformer, double):
    double("return 2 * values", "import json; return json.loads('x')")
    assert (
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (double.py, line 16)"
        in tsformer("plugins", "check", "double.py")[1]
    )
    double("return 2 * values", "import torch; return torch.zeros(2, 2) @ torch.zeros(3)")
    assert "(double.py, line 16)" in tsformer("plugins", "check", "double.py")[1]


def test_what_was_not_run_is_one_line(tsformer, double):
    """And does not bury the one that says what is wrong."""
    from tsformer.testing import TRANSFORM_CHECKS

    double("return 2 * values", "return 2 * values[0][99]")
    code, out, err = tsformer("plugins", "check", "double.py")
    assert code == 5
    _, first, rest = out.splitlines()
    assert first.startswith("  FAIL  shapes")
    assert rest.strip() == f"{len(TRANSFORM_CHECKS) - 1} more checks were not run, for they stand on the first"
    assert err.splitlines()[-1] == f"double: 0 checks passed, 1 failed, {len(TRANSFORM_CHECKS) - 1} not run"


@pytest.mark.parametrize(
    ("flag", "whose"),
    [
        ("--quiet", "tsformer itself"),
        ("--dry-run", "tsformer itself"),
        ("--plugin", "tsformer itself"),
        ("--lr", "training (option lr)"),
        ("--path", "data csv (option path)"),
        ("--own", ""),
    ],
)
def test_a_short_flag_that_clashes_is_found(tsformer, flag, whose):
    Path("taken.py").write_text(
        tsformer.local_model.replace('flag="--width"', f'flag="{flag}"').replace(
            "self.net = ", "self.net = 1 / 0; x = "
        )
    )
    code, out, _ = tsformer("plugins", "check", "taken.py")
    assert code == 5
    (line,) = [line for line in out.splitlines() if line.split()[1] == "flags"]
    if whose:
        assert line.startswith("  FAIL")
        assert f"the flag {flag} of model taken (option width) is that of {whose}" in line or (
            f"the flag {flag} of {whose} is that of model taken (option width)" in line
        )
    else:
        assert line.startswith("  ok")


def test_a_plugin_that_raises_keyboardinterrupt_is_told(tsformer):
    """In a process of its own, where the signal of Ctrl-C ends it before Python raises anything."""
    Path("mine.py").write_text("raise KeyboardInterrupt")
    command = [sys.executable, "-m", "tsformer", "plugins", "list", "--check", "--plugin", "mine.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert "transformer" in done.stdout
    assert "plugin file 'mine.py' cannot be imported: KeyboardInterrupt" in tsformer.one_line(done.stderr)


def test_check_of_a_plugin_that_exits(tsformer, double):
    double('print("fitted")', "raise SystemExit(0)")
    code, out, _ = tsformer("plugins", "check", "double.py")
    assert code == 5
    assert "SystemExit: 0 (double.py, line 12)" in out


def test_check_of_a_file_that_does_not_import(tsformer):
    Path("broken.py").write_text("import sys\nsys.exit(0)")
    code, _, err = tsformer("plugins", "check", "broken.py")
    assert code == 5
    assert "plugin file 'broken.py' cannot be imported: SystemExit: 0 (broken.py, line 2)" in tsformer.one_line(err)


@pytest.mark.parametrize(
    ("name", "said"), [("nowhere.py", "no plugin file 'nowhere.py'"), ("standart", "did you mean 'standard'")]
)
def test_check_of_what_is_not_there(tsformer, name, said):
    code, _, err = tsformer("plugins", "check", name)
    assert code == 5
    assert said in tsformer.one_line(err)


def test_a_name_of_two_kinds_checks_both(tsformer, double):
    double(name="sine")
    code, out, _ = tsformer("plugins", "check", "sine", "--plugin", "sine.py")
    assert code == 0, out
    assert [line for line in out.splitlines() if not line.startswith(" ")] == [
        "data sine (built-in)",
        "transform sine (file sine.py)",
    ]
    assert "data sine" not in tsformer("plugins", "check", "sine.py")[1]


def test_the_names_of_checks_are_one_column(tsformer):
    """Whatever the kind: what is said of each check begins in the same place."""
    from tsformer.testing import TRANSFORM_CHECKS

    longest = max(len(check.__name__.removeprefix("check_")) for check in TRANSFORM_CHECKS)
    lines = tsformer("plugins", "check", "difference")[1].splitlines()[1:]
    assert len(lines) == len(TRANSFORM_CHECKS)
    assert {line[8 + longest : 10 + longest] for line in lines} == {"  "}
    assert all(line[10 + longest] != " " for line in lines)


@pytest.mark.parametrize("path", ["models/last_value.py", "transforms/log.py", "data/sine.py"])
def test_check_a_file_that_has_the_name_of_a_built_in(tsformer, path):
    """A copy that somebody changes, or the file in plugins/ itself."""
    text = (Path(__file__).parent.parent / "plugins" / path).read_text()
    file = Path(Path(path).name)
    file.write_text(text)
    code, out, err = tsformer("plugins", "check", file)
    assert code == 0, out + err
    assert out.splitlines()[0].endswith(f" {file.stem} (file {file.name})")
    assert tsformer("plugins", "show", file.stem)[0] == 0  # the built-in is what it was


def test_check_a_file_without_a_plugin(tsformer):
    Path("notplug.py").write_text("plugin = 3")
    code, _, err = tsformer("plugins", "check", "notplug.py")
    assert code == 5
    assert "'notplug' (file notplug.py) is no plugin but int" in tsformer.one_line(err)


def test_check_a_model_file(tsformer):
    Path("my_model.py").write_text(tsformer.local_model)
    code, out, _ = tsformer("plugins", "check", "my_model.py")
    assert code == 0, out
    assert out.startswith("model my_model (file my_model.py)\n  ok    shapes")


CLASSIFIER = """
import torch
from torch import nn
from tsformer import Config, ModelPlugin, Task

class Options(Config):
    pass

class Counts(nn.Module):
    def __init__(self, options, problem):
        super().__init__()
        self.words = nn.Embedding(max(1, problem.vocabulary), problem.classes)
        self.bias = nn.Parameter(torch.zeros(problem.classes))

    def forward(self, batch, truth=0.0):
        return (self.words(batch.tokens) * batch.token_mask[..., None]).sum(1) + self.bias

def build(options, problem):
    if problem.channels or not problem.vocabulary:
        raise ValueError("texts only")
    return Counts(options, problem)

plugin = ModelPlugin(config=Options, build=build, example=Options(), tasks={Task.CLASSIFY})
"""


def test_check_a_classifier(tsformer):
    """What its build refuses is left out; what it fails at is told with its place."""
    Path("counts.py").write_text("from tsformer.errors import UsageError\n" + CLASSIFIER.replace("Value", "Usage"))
    code, out, err = tsformer("plugins", "check", "counts.py")
    assert code == 0, out
    lines = out.splitlines()
    assert lines[0] == "model counts (file counts.py)"
    names = [line.split()[1] for line in lines[1:]]
    assert names[0] == "classify_shapes"
    assert all(name.startswith("classify_") for name in names)
    assert err.endswith(f"counts: {len(names) - 1} checks passed, 1 skipped\n")

    Path("counts.py").write_text(CLASSIFIER)
    code, out, _ = tsformer("plugins", "check", "counts.py")
    assert code == 5
    assert "ValueError: texts only (counts.py, line 20)" in out


@pytest.mark.parametrize("name", ["reversal", "text", "bag_of_words"])
def test_check_of_built_ins_for_other_tasks(tsformer, name):
    code, out, err = tsformer("plugins", "check", name)
    assert code == 0, out
    assert "checks passed" in err
