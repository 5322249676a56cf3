"""From a table as people have it to a forecast: shops with promotions, weather and regions, gaps and missing values."""

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tsformer import load

DAYS = pd.date_range("2024-07-01", periods=7)
WORDS = (
    *("--target", "sales", "--future-covariates", "promo", "--past-covariates", "rain"),
    *("--static-covariates", "region", "--calendar", "dayofweek,month"),
    *("--missing", "mask", "--gaps", "fill", "--horizon", "7", "--lookback", "14"),
)


def shops():
    """Three shops of unequal starts, dates written day-first, German decimals, cells and days missing."""
    rng = np.random.default_rng(0)
    parts = []
    for number, (shop, region, rows) in enumerate(
        [("Aachen", "west", 150), ("Berlin", "east", 100), ("Köln", "west", 70)]
    ):
        promo = rng.integers(0, 2, rows)
        parts.append(
            pd.DataFrame(
                {
                    "shop": shop,
                    "day": pd.date_range(end="2024-06-30", periods=rows),
                    "sales": 1000.0 * (number + 1) * (1 + promo) + 10 * rng.normal(size=rows).round(2),
                    "region": region,
                    "rain": rng.normal(size=rows).round(2),
                    "promo": promo,
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    table.loc[rng.random(len(table)) < 0.04, "sales"] = np.nan
    table.loc[rng.random(len(table)) < 0.04, "rain"] = np.nan
    return table[~((table["shop"] == "Berlin") & table["day"].between("2024-05-03", "2024-05-05"))]


def ahead(**more):
    rows = [(shop, day, i % 2) for shop in ("Aachen", "Berlin", "Köln") for i, day in enumerate(DAYS)]
    return pd.DataFrame(rows, columns=["shop", "day", "promo"]).assign(**more)


def written(table, path):
    table.to_csv(path, sep=";", decimal=",", date_format="%d.%m.%Y", index=False)
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of a run, and what the fit said of its data."""
    folder = tmp_path_factory.mktemp("covariates")
    path = written(shops().sample(frac=1, random_state=0), folder / "shops.csv")
    words = (
        "--max-steps",
        "120",
        "--train.lr",
        "0.01",
        "--model.d-model",
        "16",
        "--model.d-ff",
        "16",
        "--out",
        folder / "run",
    )
    line = (
        "fit",
        "--model",
        "tcn_transformer",
        "--data",
        "csv",
        "--path",
        path,
        *WORDS,
        *words,
        "--out",
        folder / "run",
    )
    done = subprocess.run([sys.executable, "-m", "tsformer", *map(str, line)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


@pytest.fixture
def run(tsformer, fitted):
    """The command line, in an empty folder with the run and its table."""
    shutil.copytree(fitted[0], ".", dirs_exist_ok=True)
    return tsformer


def test_what_is_fitted_is_said_in_one_line(fitted):
    (line,) = [line for line in fitted[1].splitlines() if line.startswith("tcn_transformer: ")]
    assert "1 past covariate, 1 future covariate, 1 static covariate, calendar dayofweek month" in line
    assert "320 rows in 3 series" in line  # the three days that were missing are there
    assert "% missing" in line


def test_from_a_messy_table_to_a_forecast(run):
    code, out, err = run("predict", "run", "--future", written(ahead(), "ahead.csv"))
    assert code == 0, err
    table = pd.read_csv(pd.io.common.StringIO(out))
    assert list(table.columns) == ["shop", "day", "sales"]
    assert sorted(set(table["shop"])) == ["Aachen", "Berlin", "Köln"]
    for number, (_, rows) in enumerate(table.groupby("shop")):
        assert rows["day"].tolist() == [day.strftime("%d.%m.%Y") for day in DAYS]
        assert rows["sales"].between(500.0 * (number + 1), 3000.0 * (number + 1)).all()  # in the table's own unit
        promoted = np.arange(7) % 2 == 1
        assert rows["sales"][promoted].mean() > 1.2 * rows["sales"][~promoted].mean()

    for other in (ahead(sales=np.nan), ahead(sales=1e9, rain=-1e9, region="north"), ahead().iloc[::-1]):
        assert run("predict", "run", "--future", written(other, "other.csv"))[1] == out
    code, more, err = run("predict", "run", "--future", written(pd.concat([shops(), ahead(sales=5.0)]), "all.csv"))
    assert (code, more) == (0, out), err
    assert "of the future table" in err
    changed = ahead().assign(promo=1 - ahead()["promo"])
    assert run("predict", "run", "--future", written(changed, "changed.csv"))[1] != out

    with_text = ahead()[lambda t: ~((t["shop"] == "Berlin") & (t["day"] == DAYS[3]))]
    code, more, err = run("predict", "run", "--future", written(with_text, "less.csv"))
    assert code == 0, err
    left = table[table["shop"] != "Berlin"].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_csv(pd.io.common.StringIO(more)), left, rtol=1e-4)
    assert "note: not forecast: 1 of 3 series (Berlin): the future table lacks 1 row(s), the first of series" in err
    code, more, err = run("predict", "run", "--future", written(ahead()[lambda t: t["day"] != DAYS[3]], "none.csv"))
    assert (code, more) == (3, "")
    assert "lacks 3 row(s), the first of series 'Aachen' at 2024-07-04" in run.one_line(err.splitlines()[-1])

    code, more, err = run("predict", "run")
    assert (code, more) == (3, "")
    assert "--future FILE, a table with the columns shop, day, promo" in err
    code, more, err = run("predict", "run", "--future", written(ahead().drop(columns="promo").assign(prom=1), "no.csv"))
    assert code == 3
    assert "'promo'" in err
    assert "did you mean 'prom'" in err

    code, more, err = run(
        "predict", "run", "--horizon", "2", "--future", written(ahead()[lambda t: t["day"] < DAYS[2]], "2.csv")
    )
    assert code == 0, err
    assert len(more.splitlines()) == 7


def test_what_is_known_ahead_from_stdin(run):
    path = written(ahead(), "ahead.csv")
    plain = run("predict", "run", "--future", path)[1]
    words = [sys.executable, "-m", "tsformer", "predict", "run", "--future", "-"]
    with open(path, "rb") as file:
        done = subprocess.run(words, stdin=file, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, plain), done.stderr


def test_a_table_that_is_not_needed_is_not_read(tsformer):
    tsformer.fit_air()
    plain = tsformer("predict")[1]
    code, out, err = tsformer("predict", "--future", "nowhere.csv")
    assert (code, out) == (0, plain)
    assert "note: --future is not read: the model was fitted without future covariates" in err


def test_a_run_keeps_its_static_covariates(run):
    fitted = load("run").fitted_
    assert fitted.statics.words == {"region": ("east", "west")}
    table = shops().assign(region=lambda t: t["region"].where(t["shop"] != "Köln", "south"))
    future = written(ahead(), "ahead.csv")
    code, _, err = run("predict", "run", "--input", written(table, "new.csv"), "--future", future)
    assert code == 0, err
    assert "note: static covariate 'region': unknown to the model are south" in err


def test_a_run_whose_static_covariates_are_damaged(run, tmp_path):
    file = tmp_path / "run" / "statics.json"
    file.write_text(file.read_text().replace("east", "easy"))
    code, _, err = run("predict", "run")
    assert code == 4
    assert "statics.json' is damaged" in run.one_line(err)
