"""Groups in files: several columns, numbers in ranges, and their crossing."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fragility import Report, in_ranges
from fragility.tables import open_table, text_files, write_table
from fragility.tables.column_files import ParquetTable
from fragility.tables.group_columns import GroupBy, GroupSurvey

from .command import fragility, patients, refused, write_csv
from .reference.tables import grouped
from .test_prediction_files import predicted, refuse
from .test_tables import file
from .test_tables import refused as refuses


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    site = rng.choice(["north", "south", "west"], n, p=[0.6, 0.39, 0.01])
    columns = {
        "y": rng.integers(0, 2, n),
        "p": np.round(rng.random(n), 3),
        "age": np.round(rng.uniform(20, 80, n), 1),
        "site": site,
        "ward": rng.integers(8, 12, n),
    }
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


ASKED = [
    ([("site", None)], ["site"]),
    ([("age", [40, 60])], ["age:40,60"]),
    ([("site", None), ("age", [40, 60.5])], ["site", "age:40,60.5"]),
    ([("age", [33]), ("ward", None), ("site", None)], ["age:33", "ward", "site"]),
    ([("age", [300]), ("ward", [9, 10, 11])], ["age: 300", "ward:9,10, 11"]),
]


@pytest.mark.parametrize(("asked", "options"), ASKED)
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_against_literal_loops(tmp_path, monkeypatch, asked, options, cross, ending):
    monkeypatch.setattr(text_files, "_BLOCK", 500)
    text = table()
    found, names = grouped(text, asked, cross)
    path = file(tmp_path, text)
    if ending != ".csv":
        stored = pa.csv.read_csv(io.BytesIO(text.encode()))
        path = tmp_path / f"table{ending}"
        if ending == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in stored.to_pylist()))
        else:
            write_table(stored, path)
    made = predicted(tmp_path, path, groups=options, cross=cross)
    assert made.groups == names
    assert list(made.groups) == list(names)
    read = made.read()
    parts = np.concatenate([batch.groups for batch in made.batches()])
    again = np.concatenate(
        [b.groups for b in predicted(tmp_path, path, groups=options, cross=cross).batches()]
    )
    assert read.groups.shape == (200, len(names))
    for codes in (read.groups, parts, again):
        for place, (column, told) in enumerate(names.items()):
            assert [told[code] for code in codes[:, place]] == found[column]


def test_rows_that_are_left_out(tmp_path):
    text = "y,p,age,g\n1,0.5,30,a\n0,0.5,,a\n1,0.5,50,\n0,,30,b\n0,0.5,50,b\n"
    made = predicted(tmp_path, text, groups=["g", "age:40"], drop_missing=True)
    read = made.read()
    assert read.row_numbers.tolist() == [1, 5]
    crossing = made.groups["g × age"]
    assert [crossing[code] for code in read.groups[:, 2]] == ["a × under 40", "b × 40 and over"]
    assert "b × under 40" in crossing  # its row has no score
    refuse(tmp_path, text, "'g' has missing values", groups=["g", "age:40"])
    text = text.replace("50,\n", "50,a\n")
    refuse(tmp_path, text, "'p' has missing values", "'age' (1)", groups=["g", "age:40"])


def test_nothing_is_read_to_know_ranges(tmp_path, monkeypatch):
    made = predicted(tmp_path, table(), groups=["age:40"], classes=["0", "1"])
    monkeypatch.setattr(type(made.table), "batches", None)
    assert made.groups == {"age": ["under 40", "40 and over"]}


def test_names_with_colons(tmp_path):
    text = "y,p,a:1,b:x\n1,0.5,30,u\n0,0.5,50,v\n"
    made = predicted(tmp_path, text, groups=["a:1", "b:x"])
    assert made.groups == {
        "a:1": ["30", "50"], "b:x": ["u", "v"], "a:1 × b:x": ["30 × u", "50 × v"],
    }  # fmt: skip
    assert predicted(tmp_path, text, groups=["a:1:40"]).groups == {
        "a:1": ["under 40", "40 and over"]
    }


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (["agee"], ["no column 'agee'", "Did you mean 'age'"]),
        (["agee:40"], ["no column 'agee'", "Did you mean 'age'"]),
        (["agee:old"], ["no column 'agee'"]),
        (["age:old"], ["the cuts 'old' are not numbers", "age:40,60"]),
        (["age:"], ["the cuts '' are not numbers"]),
        (["age:40,,60"], ["not numbers"]),
        (["age:60,40"], ["'age:60,40'", "numbers that rise", "[60.0, 40.0]"]),
        (["age:40,40"], ["numbers that rise"]),
        (["age:nan"], ["numbers that rise"]),
        (["age:40,inf"], ["numbers that rise"]),
        (["age", "age:40"], ["'age' is named for groups more than once"]),
        (["site", "site"], ["'site' is named for groups more than once"]),
    ],
)
def test_bad_options(tmp_path, groups, words):
    refuses(lambda: predicted(tmp_path, table(), groups=groups), "table.csv", *words)


def test_bad_columns(tmp_path):
    refuse(tmp_path, table(), "'site' holds text, not numbers", groups=["site:3"])
    refuse(tmp_path, table(), "'site' holds text, not numbers", groups=["ward", "site:3"])
    refuses(
        lambda: predicted(tmp_path, table(), groups=["y:3"]), "'y' is named as label", "numbers"
    )
    text = "y,p,a,b\n" + "".join(f"{k % 2},0.5,a{k},b{k % 100}\n" for k in range(10_100))
    with pytest.raises(ValueError, match=r"10,100 combinations.*--no-cross"):
        len(predicted(tmp_path, text, groups=["a", "b"]).groups)
    assert len(predicted(tmp_path, text, groups=["a", "b"], cross=False).groups["a"]) == 10_100


class TestCommand:
    @pytest.fixture
    def csv(self, tmp_path):
        rng = np.random.default_rng(1)
        data = patients(400)
        return write_csv(tmp_path / "p.csv", {**data, "age": rng.integers(20, 80, 400)})

    @pytest.mark.slow
    @pytest.mark.parametrize("way", [[], ["--hold", "0"]])
    def test_the_same_as_arrays(self, csv, way):
        asked = ("--label", "sick", "--score", "fair", "--group", "sex", "--group", "age:40,60")
        ended = fragility("evaluate", csv, *asked, "--json", *way)
        assert ended.code == 0, ended.err
        stored = pa.csv.read_csv(csv).to_pandas()
        groups = {"sex": stored["sex"], "age": in_ranges(stored["age"], [40, 60])}
        wanted = Report.from_predictions(stored["sick"], {"fair": stored["fair"]}, groups=groups)
        told = json.loads(ended.out)["groups"]
        assert len(told) == 2 + 3 + 6
        for one, two in zip(told, wanted.to_dict()["groups"], strict=True):
            for name in ("column", "group", "n", "support", "too_small"):
                assert one[name] == two[name]
            if not way:
                assert one == two
        names = [(part["column"], part["group"]) for part in told]
        assert names[0] == ("sex", "f")
        assert names[-1] == ("sex × age", "m × 60 and over")

    def test_no_cross_and_a_single_column(self, csv):
        asked = ("evaluate", csv, "--label", "sick", "--score", "fair", "--json", "--group", "sex")
        asked += ("--no-calibration",)
        alone = json.loads(fragility(*asked).out)["groups"]
        assert [part["group"] for part in alone] == ["f", "m"]
        two = json.loads(fragility(*asked, "--group", "age:40", "--no-cross").out)["groups"]
        assert [(part["column"], part["group"]) for part in two] == [
            *(("sex", "f"), ("sex", "m")),
            *(("age", "under 40"), ("age", "40 and over")),
        ]

    def test_groups_that_are_all_too_small_are_not_passed_over(self, csv):
        asked = ("evaluate", csv, "--label", "sick", "--score", "fair", "--group", "sex")
        told = " ".join(fragility(*asked, "--min-cell", "100000").out.split())
        assert "No group has 100,000 cases of each class, so that none is compared: --full" in told
        for more in ((), ("--min-cell", "100000", "--full")):
            assert "No group has" not in fragility(*asked, *more).out

    def test_refused(self, csv):
        asked = ("evaluate", csv, "--label", "sick", "--score", "fair", "--group")
        refused(fragility(*asked, "age:60,40"), "numbers that rise")
        refused(fragility(*asked, "sex:3"), "'sex' holds text, not numbers")
        refused(fragility(*asked, "aeg:3"), "no column 'aeg'", "Did you mean 'age'")


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16()])
def test_whole_numbers_that_come_late(kind):
    """A number between those that are known is found, wherever it comes first."""
    parts = [[7, 4, 4], [4, 7], [5], [7, 5, 4], [3], [3, 7]]
    batches = [pa.record_batch({"ward": pa.array(part, kind)}) for part in parts]
    survey = GroupSurvey(None, (GroupBy("ward"),), cross=False)
    for batch in batches:
        survey.add(batch)
    found = survey.found()
    assert found.names == {"ward": ["3", "4", "5", "7"]}
    for batch, part in zip(batches, parts, strict=True):
        codes, missing = found.codes(None, batch)
        assert codes[:, 0].tolist() == [[3, 4, 5, 7].index(number) for number in part]
        assert missing.tolist() == [False] * len(part)


def test_whole_numbers_of_any_size(tmp_path):
    """Far apart, negative, or with a gap: codes are places among the sorted numbers."""
    rng = np.random.default_rng(3)
    for numbers in ([-3, -2, -1, 0], [-3, 2], [0, 2**62], [2**63 + 5, 2**63 + 6]):
        ward = rng.choice(np.array(numbers), 50)
        columns = {"y": rng.integers(0, 2, 50), "p": rng.random(50), "ward": ward}
        path = tmp_path / "numbers.parquet"
        write_table(pa.table(columns), path)
        codes = predicted(tmp_path, path, groups=["ward"]).read().groups[:, 0]
        assert codes.tolist() == [numbers.index(number) for number in ward.tolist()]


class TestStatistics:
    """Parquet files say between which ends whole numbers lie: names may be known before the end."""

    @staticmethod
    def written(folder, **columns):
        n = len(next(iter(columns.values())))
        whole = {"y": np.arange(n) % 2, "p": np.linspace(0.1, 0.9, n)} | columns
        pq.write_table(pa.table(whole), folder / "t.parquet", row_group_size=1_500)
        return folder / "t.parquet"

    def test_ends(self, tmp_path):
        n = 4_000
        path = self.written(
            tmp_path,
            site=np.arange(n, dtype=np.int16) % 7 - 3,
            gaps=[None, *range(n - 1)],
            text=["a"] * n,
            part=np.linspace(0, 1, n),
        )
        opened = open_table(path)
        assert opened.ends("site") == (-3, 3)
        assert opened.ends("y") == (0, 1)
        assert [opened.ends(name) for name in ("gaps", "text", "part")] == [None] * 3
        pq.write_table(pq.read_table(path), path, write_statistics=False)
        assert open_table(path).ends("site") is None

    @pytest.mark.parametrize("lacking", [None, 2])
    def test_reading_ends_when_all_names_are_known(self, tmp_path, monkeypatch, lacking):
        """Sites are 1, 2, 3 and 4; if one between the ends is not there, all rows are read."""
        monkeypatch.setattr("fragility.tables.table._CELLS_AT_ONCE", 1_024)
        site = np.arange(4_096) % 4 + 1
        if lacking is not None:
            site[site == lacking] = lacking + 1
        made = predicted(tmp_path, self.written(tmp_path, site=site), groups=["site"])
        looked = []
        monkeypatch.setattr(made, "_look", lambda data: looked.append(data.num_rows))
        monkeypatch.setattr(made, "_know", lambda: None)
        monkeypatch.setattr(made, "_seen", lambda column: [0, 1])
        assert made.groups == {"site": sorted(set(site.astype(str).tolist()))}
        assert sum(looked) == (1_024 if lacking is None else 4_096)

    def test_statistics_that_are_wrong(self, tmp_path, monkeypatch):
        """A value that they do not tell is refused, not lost."""
        monkeypatch.setattr("fragility.tables.table._CELLS_AT_ONCE", 1_024)
        path = self.written(tmp_path, site=np.repeat([1, 2, 3], [2_000, 1, 999]))
        told = {"y": (0, 1), "site": (1, 1)}
        monkeypatch.setattr(ParquetTable, "ends", lambda self, column: told[column])
        refuses(lambda: list(predicted(tmp_path, path, groups=["site"]).batches()), "'site'", "2")
