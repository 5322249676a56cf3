"""Published protocols as plans: borders, windows, standardisation, and rows of a test file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

import tsformer
from tsformer import sources
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.continuation import continued
from tsformer.errors import DataError, UsageError
from tsformer.evaluation import protocols
from tsformer.evaluation.baselines import seasonal_naive
from tsformer.evaluation.metrics import score
from tsformer.evaluation.scales import seasonal_scale


def values(rows, columns=7):
    return np.random.default_rng(0).normal(3, 2, (rows, columns)).cumsum(axis=0)


@pytest.fixture
def etth(make_panel):
    return make_panel([values(14500)], names=protocols.ETT, frequency="h")


@pytest.mark.parametrize(("horizon", "windows"), [(96, 2785), (192, 2689), (336, 2545), (720, 2161)])
def test_etth_has_the_papers_borders_and_all_their_windows(etth, horizon, windows):
    plan = protocols.ltsf(etth, horizon)
    (block,) = plan.blocks
    assert (block.split.train, block.split.validation, block.split.lengths) == (8640, 11520, 11520)
    assert len(block.origins) == windows
    np.testing.assert_array_equal(block.origins, np.arange(11520, 14400 - horizon + 1))
    np.testing.assert_array_equal(block.number, np.arange(windows))
    assert plan.before == 11520
    (note,) = plan.notes
    assert "8640/2880/2880 (ETTh)" in note
    assert "the last 100 of 14500 not used" in note
    assert f"{windows:,} windows" in note


def test_ettm_is_told_by_its_step(make_panel):
    panel = make_panel([values(57600)], names=protocols.ETT, frequency="15min")
    (block,) = protocols.ltsf(panel, 96).blocks
    assert (block.split.train, block.split.validation, len(block.origins)) == (34560, 46080, 11520 - 95)


@pytest.mark.parametrize("names", [protocols.ETT, ("a", "b", "c", "d", "e", "f", "OT")], ids=["daily", "other columns"])
def test_others_are_split_by_shares(make_panel, names):
    panel = make_panel([values(7588)], names=names, frequency="D")  # as many as exchange_rate
    (block,) = protocols.ltsf(panel, 96).blocks
    assert (block.split.train, block.split.validation, len(block.origins)) == (5311, 7588 - 1517, 1422)
    assert block.origins[-1] + 96 == 7588


def test_rows_of_the_users_own(etth):
    plan = protocols.ltsf(etth, 96, protocols.rows_of("8640, 2880,2980"))
    assert len(plan.blocks[0].origins) == 2885
    assert "8640/2880/2980 (--split)" in plan.notes[0]
    for text in ("8640", "1,2,3,4", "1,2,x", "1,0,2", "-1,2,3"):
        with pytest.raises(UsageError, match="--split is TRAIN,VALIDATION,TEST"):
            protocols.rows_of(text)
    with pytest.raises(DataError, match="needs 14501 rows, and the table has 14500"):
        protocols.ltsf(etth, 96, (8640, 2880, 2981))
    with pytest.raises(UsageError, match="8640/95/2880 rows of the table do not each hold a window of horizon 96"):
        protocols.ltsf(etth, 96, (8640, 95, 2880))


def test_the_scale_is_scikit_learns_on_training_rows(make_panel):
    rows = values(300, 3)
    rows[:210, 2] = 0.1  # constant in the training rows
    panel = make_panel([rows])
    plan = protocols.ltsf(panel, 12)
    scaler = StandardScaler().fit(rows[:210])
    np.testing.assert_allclose(plan.scale[0, :, 0], scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(plan.scale[0, :, 1], scaler.scale_, rtol=1e-12)
    assert plan.scale[0, 2, 1] == 1


def test_later_rows_change_no_scale(make_panel):
    rows = values(300, 2)
    spoiled = rows.copy()
    spoiled[210:] = -1e9
    one, other = (protocols.ltsf(make_panel([each]), 12) for each in (rows, spoiled))
    assert one.scale.tobytes() == other.scale.tobytes()
    assert one.notes == other.notes


def test_no_window_holds_a_gap(make_panel):
    panel = make_panel([values(300, 1)], breaks=np.array([290]))
    plan = protocols.ltsf(panel, 12)
    (block,) = plan.blocks
    assert [origin for origin in range(240, 289) if origin not in block.origins] == list(range(279, 289))
    assert "10 window(s) of the test rows hold a gap in time" in plan.notes[1]


def test_a_training_part_without_values_is_named(make_panel):
    rows = values(300, 2)
    rows[:210, 1] = np.nan
    with pytest.raises(DataError, match=r"column 'y1' of the table has no value in the 210 training rows"):
        protocols.ltsf(make_panel([rows], masked=True), 12)


def test_series_of_a_long_table_have_parts_of_their_own(make_panel):
    plan = protocols.ltsf(make_panel([values(100, 1), values(50, 1)]), 5)
    (block,) = plan.blocks
    assert block.split.train.tolist() == [70, 35]
    assert block.origins[block.series == 1].tolist() == list(range(40, 46))
    assert block.number[block.series == 1].tolist() == list(range(6))


class TestTestFile:
    """Rows of another file, as in the M competitions."""

    def wide(self, folder, *, test="a,21,22,23\nb,7,8,9\n", header='"V1","V2","V3","V4"'):
        """A train file with a series in each row, of unequal lengths, and a test file."""
        train, file = folder / "train.csv", folder / "test.csv"
        names = ",".join(f'"V{i}"' for i in range(1, 22))
        short = ",".join([*map(str, range(1, 13)), *[""] * 8])
        train.write_text(f"{names}\na,{','.join(map(str, range(1, 21)))}\nb,{short}\n")
        file.write_text(f"{header}\n{test}")
        return str(train), str(file)

    def read(self, train, test):
        settings = resolve([Layer({"model": {"name": "last_value"}, "data": {"name": "csv", "path": train}})])
        panel = sources.load_data(settings.data)
        return panel, sources.read_test(settings, test, panel)

    def test_wide(self, tmp_path):
        panel, both = self.read(*self.wide(tmp_path))
        assert both.lengths.tolist() == [23, 15]
        assert both.values[both.rows(0), 0].tolist() == list(range(1, 24))
        assert both.values[both.rows(1), 0].tolist() == [*range(1, 13), 7, 8, 9]
        assert both.times[both.rows(1)].tolist() == list(range(1, 16))  # the counter goes on
        plan = protocols.follows(both, panel.lengths, 2)
        (block,) = plan.blocks
        assert (block.series.tolist(), block.origins.tolist(), block.number.tolist()) == ([0, 1], [20, 12], [0, 0])
        assert block.split.validation.tolist() == block.split.lengths.tolist() == [20, 12]
        assert block.split.train.tolist() == [18, 10]
        assert "after step 2" in plan.notes[1]
        # by hand: last values 20 and 12; errors 1, 2 and 5, 4; a step is 1 in both series
        rows = both.offsets[block.series] + block.origins
        found = seasonal_naive(both, block.series, rows, 2, 1)
        truth = both.values[rows[:, None] + np.arange(2), :1]
        assert score(found, truth, block.series, seasonal_scale(both, plan.before, 1), ["y"]).overall["mase"] == 3

    def test_series_without_test_rows_are_said(self, tmp_path):
        panel, both = self.read(*self.wide(tmp_path, test="b,7,8,9\n"))
        plan = protocols.follows(both, panel.lengths, 3)
        assert plan.blocks[0].series.tolist() == [1]
        assert plan.notes[-1] == "without test rows, and not forecast: 1 of 2 series (a)"

    def test_faults_are_named(self, tmp_path):
        with pytest.raises(DataError, match=r"test.csv has 1 series that the data have not \(z\); column 'V1'"):
            self.read(*self.wide(tmp_path, test="a,1,2,3\nz,1,2,3\n"))
        panel, both = self.read(*self.wide(tmp_path))
        with pytest.raises(DataError, match=r"has 3 row\(s\) of series .a. \(2 of 2 .* a horizon of 4"):
            protocols.follows(both, panel.lengths, 4)

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_long(self, tmp_path, ending):
        days = pd.date_range("2024-01-01", periods=33)
        table = pd.DataFrame(
            {
                "shop": ["x"] * 33 + ["y"] * 33,
                "day": [*days, *days],
                "sold": np.arange(66.0),
                "price": np.arange(66.0) * 2,
            }
        )
        late = table.day > days[29]
        files = []
        for name, part in (("train", table[~late]), ("test", table[late][::-1])):  # in any order
            files.append(str(tmp_path / f"{name}.{ending}"))
            part.to_csv(files[-1], index=False) if ending == "csv" else part.to_parquet(files[-1], index=False)
        panel, both = self.read(*files)
        whole = tsformer.read("csv", path=str(self.written(tmp_path, table)))
        np.testing.assert_array_equal(both.values, whole.values)
        assert both.times.equals(whole.times)
        assert both.schema == panel.schema
        assert protocols.follows(both, panel.lengths, 3).before.tolist() == [30, 30]

    def written(self, folder, table):
        table.to_csv(folder / "whole.csv", index=False)
        return folder / "whole.csv"

    def test_other_columns_are_refused(self, tmp_path):
        days = pd.date_range("2024-01-01", periods=33)
        table = pd.DataFrame({"day": days, "sold": np.arange(33.0)})
        train, test = str(tmp_path / "train.csv"), str(tmp_path / "test.csv")
        table[:30].to_csv(train, index=False)
        table[30:].rename(columns={"sold": "sales"}).to_csv(test, index=False)
        with pytest.raises(DataError, match=r"test.csv has no column 'sold': it has day, sales"):
            self.read(train, test)

    def test_rows_that_do_not_come_next_are_refused(self, make_panel):
        panel = make_panel([np.arange(20.0)])
        late = make_panel([np.arange(5.0)])
        with pytest.raises(DataError, match=r"test: the rows begin at 2020-01-01, but 2020-01-21 comes after the last"):
            continued(panel, late, "test")
