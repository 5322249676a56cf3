"""stdout carries data only, whatever a plugin writes, and however the program was started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tsformer.cli.console import data_only

FIT = ("fit", "--plugin", "my_model.py", "--model", "my_model", "--data", "sine", "--max-steps", "2", "--horizon", "3")


def run(line, folder):
    """A shell line with `tsformer` standing for this very installation: exit code, stdout and stderr."""
    command = f'tsformer() {{ "{sys.executable}" -m tsformer "$@"; }}; {line}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_what_is_written_below_python_reaches_stderr(capfd):
    """By the descriptor, by a program that is started, and through a stream that was kept."""
    with data_only():
        os.write(1, b"descriptor\n")
        subprocess.run(["echo", "program"], check=True)
        with data_only():
            os.write(1, b"nested\n")
        os.write(1, b"after\n")
        print("kept", file=sys.__stdout__)
    os.write(1, b"data\n")
    out, err = capfd.readouterr()
    assert out == "data\n"
    assert err.splitlines()[:4] == ["descriptor", "program", "nested", "after"]


def test_what_c_has_buffered_reaches_stderr(tmp_path):
    code = (
        "import ctypes\nfrom tsformer.cli.console import data_only\n"
        "with data_only():\n    ctypes.CDLL(None).puts(b'from C')\nprint('data')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("data\n", "from C\n")


def test_an_error_restores_stdout(capfd):
    with pytest.raises(ZeroDivisionError), data_only():
        raise ZeroDivisionError
    os.write(1, b"data\n")
    print("more", flush=True)
    assert capfd.readouterr().out == "data\nmore\n"


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-", "0<&- 2>&-"])
def test_closed_descriptors_are_left_as_they_were(closed):
    code = (
        "import os\nfrom tsformer.cli.console import data_only\n"
        "def there():\n    return [n for n in range(3) if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "before = there()\nwith data_only():\n    print('lost')\n    1 in before and os.write(1, b'lost')\n"
        "assert there() == before\nif 1 in before: os.write(1, b'data')"
    )
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "$0" {closed}', code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("" if "1>&-" in closed else "data")


def test_the_folder_is_the_same_afterwards(in_tmp):
    Path("elsewhere").mkdir()
    with data_only():
        os.chdir("elsewhere")
    assert Path.cwd() == in_tmp
    os.chdir("elsewhere")
    Path.cwd().rmdir()
    with data_only():
        pass  # in a folder that is no more


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_a_fit_without_stderr(tsformer, in_tmp, closed):
    """As daemons start programs."""
    Path("my_model.py").write_text(tsformer.local_model)
    code, out, _ = run(f"tsformer {' '.join(FIT)} {closed}", in_tmp)
    assert code == 0
    assert Path(out.strip(), "manifest.json").is_file()
    code, out, _ = run(f"tsformer fit --model nobody --data sine {closed}", in_tmp)
    assert (code, out) == (5, "")


def test_a_fit_without_stdout_says_so(in_tmp):
    code, _, err = run("tsformer plugins list >&-", in_tmp)
    assert code == 7
    assert "stdout is closed" in err


@pytest.mark.parametrize("place", ["import", "build", "forward"])
def test_a_plugin_that_changes_the_folder(tsformer, in_tmp, place):
    """The run is where the line says."""
    change = f"import os; os.chdir({str(in_tmp / 'elsewhere')!r})"
    Path("elsewhere").mkdir()
    text = {
        "import": f"{change}\n{tsformer.local_model}",
        "build": tsformer.local_model.replace("super().__init__()", f"super().__init__(); {change}"),
        "forward": tsformer.local_model.replace("past = torch", f"{change}\n        past = torch"),
    }[place]
    Path("my_model.py").write_text(text)
    code, out, err = tsformer(*FIT)
    assert code == 0, err
    assert out.startswith("runs/")
    assert Path(out.strip(), "manifest.json").is_file()
    code, out, err = tsformer("predict", "--plugin", "my_model.py", "--output", "table.csv")
    assert code == 0, err
    assert (in_tmp / "table.csv").is_file()
    assert not any((in_tmp / "elsewhere").iterdir())


def test_what_a_model_writes_by_the_descriptor_is_no_data(tsformer, in_tmp):
    Path("my_model.py").write_text(f"import os; os.write(1, b'below')\n{tsformer.local_model}")
    code, out, err = run(f"tsformer {' '.join(FIT)} --json", in_tmp)
    assert code == 0, err
    json.loads(out)
    assert "below" in err
