"""Predictions in files: the same arrays whatever the file, and words for everything else."""

import csv
import datetime
import gzip
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragility.tables import PredictionFile, open_table, parse_models, text_files, write_table
from fragility.tables.table import Batches

from .reference.tables import predictions
from .test_tables import file, refused, stream_file

BINARY = "y,p\n1,0.9\n0,0.25\n1,0.4\n"


def predicted(folder, content, scores=("p",), *, label="y", name="table.csv", **options):
    table = open_table(
        file(folder, content, name) if isinstance(content, (str, bytes)) else content
    )
    models = parse_models(scores, table.column_names)
    return PredictionFile(table, label=label, models=models, **options)


def refuse(folder, content, *words, scores=("p",), **options):
    """Both ways of reading refuse, with the same line."""
    message = refused(lambda: predicted(folder, content, scores, **options).read(), *words)
    assert message == refused(lambda: list(predicted(folder, content, scores, **options).batches()))
    return message


def joined(parts):
    """What `read` should return, put together by hand."""

    def all_of(name):
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    numbers = [number for part in parts for number in part.row_numbers.tolist()]
    scores = {m: np.concatenate([p.scores[m] for p in parts]) for m in parts[0].scores}
    return {n: all_of(n) for n in ("codes", "weights", "groups", "error_costs")}, scores, numbers


class TestModels:
    def test_forms(self):
        assert parse_models(["p", "new = q ", "m=a, b,c"]) == {
            "p": ("p",), "new": ("q",), "m": ("a", "b", "c"),
        }  # fmt: skip

    def test_odd_names_of_columns(self):
        names = ["a=b", "x,y", "c"]
        assert parse_models(["a=b", "x,y"], names) == {"a=b": ("a=b",), "x,y": ("x,y",)}
        assert parse_models(["m=a=b", "n=x,y"], names) == {"m": ("a=b",), "n": ("x,y",)}
        assert parse_models(["a=c"], names) == {"a": ("c",)}

    @pytest.mark.parametrize("option", ["", "=p", "m=", "m=a,,b", "m=a,", " "])
    def test_empty_parts(self, option):
        refused(lambda: parse_models([option]), "empty part", "NAME=column")

    def test_others(self):
        refused(lambda: parse_models([]), "at least one column")
        refused(lambda: parse_models(["a", "a=b"]), "Two models", "'a'")
        refused(lambda: parse_models(["m=a,a"]), "'a' more than once")
        refused(lambda: parse_models(["a,b"]), "no model", "NAME=a,b")


class TestAgainstTheCsvModule:
    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
    @given(data=st.data())
    def test_any_table(self, tmp_path, data):
        kind = data.draw(st.sampled_from([["0", "1"], ["10", "-9"], ["yes", "ü"], ["b", "1"]]))
        drop = data.draw(st.booleans())
        form = st.sampled_from(["{!r}", " {!r}", "{:.3f}", "{:e}", "{:.20g}"])
        score = st.builds(str.format, form, st.floats(0, 1))
        missing = st.sampled_from(["", "NA", " nan", "null"])
        cell = st.one_of(score, missing) if drop else score
        row = st.tuples(
            st.text('a,"\n é', max_size=4),
            st.sampled_from([*kind, ""] if drop else kind),
            cell,
            cell,
        )
        rows = data.draw(st.lists(row, max_size=20))
        rows += [("", kind[0], "0.5", "1"), ("", kind[1], "0.25", "0")]  # two classes at least
        delimiter = data.draw(st.sampled_from(",;"))
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter).writerows([("note", "y", " p", "q q"), *rows])
        content = text.getvalue().encode()
        if data.draw(st.booleans()):
            content = gzip.compress(content)
        made = predicted(tmp_path, content, ["p", "q=q q"], drop_missing=drop)
        read = made.read()
        classes, codes, scores, numbers = predictions(
            text.getvalue(), "y", ["p", "q q"], delimiter, drop
        )
        assert made.classes == classes
        assert read.codes.tolist() == codes
        assert read.scores["p"].tolist() == scores["p"]
        assert read.scores["q"].tolist() == scores["q q"]
        assert read.row_numbers.tolist() == numbers
        assert (made.n_rows, made.n_dropped) == (len(codes), len(rows) - len(codes))
        assert (read.rows is None) == (made.n_dropped == 0)


class TestKinds:
    TABLE = pa.table(
        {
            "y": ["no", "yes", "no", "yes"],
            "p": [0.5, 0.25, 0.125, 1.0],
            "w": [1, 2, 0, 4],
            "g": ["b", "a", "b", "c"],
            "c": [1.5, 0.0, 2.0, 3.0],
        }
    )

    def test_the_same_from_every_kind(self, tmp_path):
        options = {"weight": "w", "groups": ["g"], "error_cost": "c"}
        paths = [tmp_path / f"t{e}" for e in (".csv", ".csv.gz", ".tsv", ".parquet", ".feather")]
        for path in paths:
            write_table(self.TABLE, path)
        for path in [*paths, stream_file(tmp_path / "t.arrows", self.TABLE)]:
            made = predicted(tmp_path, path, **options)
            read = made.read()
            assert made.classes == ["no", "yes"]
            assert made.positive == "yes"
            assert made.groups["g"] == ["a", "b", "c"]
            assert read.codes.tolist() == [0, 1, 0, 1]
            assert read.codes.dtype == read.groups.dtype == np.uint8
            assert read.scores["p"].tolist() == [0.5, 0.25, 0.125, 1.0]
            assert read.weights.tolist() == [1, 2, 0, 4]
            assert read.weights.dtype == np.float64
            assert read.groups[:, 0].tolist() == [1, 0, 1, 2]
            assert read.error_costs.tolist() == [1.5, 0.0, 2.0, 3.0]
            assert (read.first_row, read.rows, read.fraction) == (1, None, 1.0)

    @pytest.mark.parametrize(
        ("column", "classes"),
        [
            (pa.array([True, False, True]), ["0", "1"]),
            (pa.array([2, -1, 2], pa.int8()), ["-1", "2"]),
            (pa.array([10, 9, 10], pa.uint64()), ["9", "10"]),
            (pa.array([2.0, 1.0, 2.0], pa.float32()), ["1", "2"]),
            (pa.array([1.0, 0.0, 1.0]).cast(pa.float16()), ["0", "1"]),
            (pa.array([Decimal("1.00"), Decimal("0.00"), Decimal("1.00")]), ["0", "1"]),
            (pa.array(["b", "a", "b"], pa.large_string()), ["a", "b"]),
            (pa.array(["10", "9.0", "10"]), ["9", "10"]),
            (pa.array(["True", "false", "True"]), ["0", "1"]),
            (pa.array(["b", "a", "b"]).dictionary_encode(), ["a", "b"]),
            (pa.array([7, 5, 7]).dictionary_encode(), ["5", "7"]),
            (pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.int8()), ["a", "-", "c"]),
             ["a", "c"]),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("ending", [".parquet", ".arrow"])
    def test_types_of_labels(self, tmp_path, column, classes, ending):
        path = tmp_path / f"t{ending}"
        write_table(pa.table({"y": column, "p": [0.5, 0.5, 1.0], "g": column}), path)
        made = predicted(tmp_path, path, groups=["g"])
        assert made.classes == made.groups["g"] == classes
        assert made.read().codes.tolist() == made.read().groups[:, 0].tolist() == [1, 0, 1]
        named = predicted(tmp_path, path, classes=classes[::-1], positive=classes[1])
        assert named.read().codes.tolist() == [0, 1, 0]
        assert (named.classes, named.positive) == (classes[::-1], classes[1])

    @pytest.mark.parametrize(
        ("column", "dtype"),
        [
            (pa.array([0.5, 0.25, 1.0], pa.float32()), np.float32),
            (pa.array([0.5, 0.25, 1.0], pa.float32()).cast(pa.float16()), np.float32),
            (pa.array([0.5, 0.25, 1.0]), np.float64),
            (pa.array([0.5, 0.25, 1.0]).dictionary_encode(), np.float64),
            (pa.array([Decimal("0.50"), Decimal("0.25"), Decimal("1.00")]), np.float64),
            (pa.array(["0.5", " +.25", "1e0"]), np.float64),
            (pa.array(["0.5", " +.25", "1e0"], pa.large_string()).dictionary_encode(), np.float64),
            (pa.array(["0.5", ".25", "1"], pa.string_view()), np.float64),
        ],
    )
    def test_types_of_scores(self, tmp_path, column, dtype):
        with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink:
            labels = pa.array(["a", "b", "a"], pa.string_view())
            table = pa.table({"y": labels, "p": column})
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        scores = predicted(tmp_path, tmp_path / "t.arrow").read().scores["p"]
        assert scores.dtype == dtype
        assert scores.tolist() == [0.5, 0.25, 1.0]

    def test_whole_numbers_as_scores(self, tmp_path):
        for column in (pa.array([1, 0, 1]), pa.array([True, False, True])):
            write_table(pa.table({"y": [0, 1, 0], "p": column}), tmp_path / "t.parquet")
            scores = predicted(tmp_path, tmp_path / "t.parquet").read().scores["p"]
            assert scores.tolist() == [1.0, 0.0, 1.0]

    def test_types_that_are_neither(self, tmp_path):
        days = pa.array([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)])
        path = tmp_path / "t.parquet"
        write_table(pa.table({"d": days, "l": [[1], [2]], "y": [0, 1], "p": [0.1, 0.2]}), path)
        refuse(tmp_path, path, "'d'", "date32", "must be text", label="d")
        refuse(tmp_path, path, "'d'", "date32", "must be text", groups=["d"])
        refuse(tmp_path, path, "'l'", "list", "not numbers", scores=["l"])

    def test_labels_that_are_counted_in_codes_of_a_byte(self, tmp_path):
        """A dictionary as large as its codes allow, with a missing value besides."""
        codes = pa.array([*range(128), None], pa.int8())
        labels = pa.DictionaryArray.from_arrays(codes, [f"c{i:03}" for i in range(128)])
        table = pa.table({"y": labels, **{f"c{i:03}": np.full(129, 1 / 128) for i in range(128)}})
        write_table(table, tmp_path / "t.arrow")
        scores = ["m=" + ",".join(table.column_names[1:])]
        made = predicted(tmp_path, tmp_path / "t.arrow", scores, drop_missing=True)
        assert made.read().codes.tolist() == list(range(128))
        assert made.n_dropped == 1


class TestBatches:
    @pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow"])
    @pytest.mark.parametrize("drop", [False, True])
    @pytest.mark.parametrize("named", [False, True])
    def test_batches_are_what_is_read(self, tmp_path, monkeypatch, ending, drop, named):
        monkeypatch.setattr(text_files, "_BLOCK", 4_000)
        monkeypatch.setattr("fragility.tables.table._CELLS_AT_ONCE", 6_000)
        rng = np.random.default_rng(5)
        n = 4_000
        proba = rng.dirichlet(np.ones(3), size=n)
        labels = np.array(["cat", "dog", "owl"])[rng.integers(0, 3, n)]
        groups = rng.integers(0, 300, n).astype(float)
        absent = rng.random((n, 4)) < (0.05 if drop else 0.0)
        absent[1_500:2_800] = drop  # whole batches
        table = pa.table(
            {
                "y": pa.array(labels, mask=absent[:, 0]),
                "p_cat": pa.array(proba[:, 0], mask=absent[:, 1]),
                "p_dog": proba[:, 1],
                "p_owl": proba[:, 2],
                "w": pa.array(rng.random(n), mask=absent[:, 2]),
                "g": pa.array(groups, mask=absent[:, 3]),
                "k": rng.random(n),
            }
        )
        path = tmp_path / f"t{ending}"
        write_table(table, path)
        options = {"weight": "w", "groups": ["g"], "error_cost": "k", "drop_missing": drop}
        if named:
            options["classes"] = ["cat", "dog", "owl"]
        made = predicted(tmp_path, path, ["m=p_cat,p_dog,p_owl"], **options)
        parts = list(made.batches())
        assert len(parts) > 2
        assert [part.fraction for part in parts] == sorted(part.fraction for part in parts)
        counts = made.n_rows, made.n_dropped
        read = made.read()
        columns, scores, numbers = joined(parts)
        for name, column in columns.items():
            np.testing.assert_array_equal(getattr(read, name), column)
        np.testing.assert_array_equal(read.scores["m"], scores["m"])
        kept = np.flatnonzero(~absent.any(axis=1))
        assert numbers == (kept + 1).tolist()
        assert read.row_numbers.tolist() == numbers
        assert (read.rows is None) == (not drop)
        assert counts == (made.n_rows, made.n_dropped) == (kept.size, n - kept.size)
        assert [made.classes[code] for code in read.codes] == labels[kept].tolist()
        told = [float(made.groups["g"][code]) for code in read.groups[:, 0]]
        assert told == groups[kept].tolist()
        np.testing.assert_array_equal(read.scores["m"], proba[kept])
        np.testing.assert_array_equal(read.weights, table["w"].to_numpy()[kept])

    def test_the_labels_are_read_once_and_alone(self, tmp_path, monkeypatch):
        write_table(TestKinds.TABLE, tmp_path / "t.parquet")
        made = predicted(tmp_path, tmp_path / "t.parquet", weight="w")
        asked = []
        real = type(made.table).batches

        def noted(self, columns=None, types=None) -> Batches:
            asked.append(list(columns))
            return real(self, columns, types)

        monkeypatch.setattr(type(made.table), "batches", noted)
        assert made.classes == ["no", "yes"]
        assert asked == [["y"]]
        list(made.batches())
        assert made.n_rows == 4
        assert asked == [["y"], ["y", "p", "w"]]

    def test_classes_that_are_given_need_no_extra_reading(self, tmp_path, monkeypatch):
        made = predicted(tmp_path, BINARY, classes=["1", "0"])
        monkeypatch.setattr(type(made.table), "batches", None)
        assert made.classes == ["1", "0"]
        assert made.positive == "0"

    def test_rows_are_counted_when_asked(self, tmp_path):
        made = predicted(tmp_path, "y,p\n1,0.5\n,0.5\n0,0.5\n", drop_missing=True)
        assert (made.n_rows, made.n_dropped) == (2, 1)


class TestClasses:
    def test_numbers_beyond_all_exponents(self, tmp_path):
        text = "y,p\n1e99999999999999999999,0.5\nx,0.5\n"
        assert predicted(tmp_path, text).classes == ["1e99999999999999999999", "x"]
        text = "y,p\n1e99999999999999999999,0.5\n1,0.5\n"
        refuse(tmp_path, text, "numbers that are not class labels", "1e99999999999999999999")

    def test_numbers_by_size_text_by_alphabet(self, tmp_path):
        assert predicted(tmp_path, "y,p\n10,0\n9.0,1\n10.0,0\n").classes == ["9", "10"]
        assert predicted(tmp_path, "y,p\nb10,0\nb9,1\n").classes == ["b10", "b9"]
        assert predicted(tmp_path, "y,p\nTrue,0\nFalse,1\n").classes == ["0", "1"]
        assert predicted(tmp_path, "y,p\nno,0\n1,1\n").classes == ["1", "no"]
        assert predicted(tmp_path, "y,p\n 1,0.5\n0 ,0.5\n1,0\n").read().codes.tolist() == [1, 0, 1]

    def test_positive(self, tmp_path):
        assert predicted(tmp_path, BINARY).positive == "1"
        assert predicted(tmp_path, BINARY, positive="0").positive == "0"
        assert predicted(tmp_path, BINARY, positive="0.0").positive == "0"
        text = "y,p\nyes,0.5\nno,0.5\n"
        assert predicted(tmp_path, text, positive="no").positive == "no"
        words = ("positive class", "'maybe'", "'no', 'yes'")
        refused(lambda: predicted(tmp_path, text, positive="maybe").classes, *words)

    def test_columns_named_for_the_classes(self, tmp_path):
        text = "y,p_cow,p_cat,q_cat,q_cow,cat,cow\ncat,0.25,0.75,1,0,0.5,0.5\ncow,1,0,0,1,0,1\n"
        made = predicted(tmp_path, text, ["p=p_cow,p_cat", "q=q_cat,q_cow", "r=cow,cat"])
        assert made.classes == ["cat", "cow"]
        read = made.read()
        assert read.scores["p"].tolist() == [[0.75, 0.25], [0.0, 1.0]]
        assert read.scores["q"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert read.scores["r"].tolist() == [[0.5, 0.5], [0.0, 1.0]]
        text = "y,p_2,p_10,p_1\n1,0,0,1\n2,0.5,0.25,0.25\n10,0,1,0\n"
        made = predicted(tmp_path, text, ["m=p_2,p_10,p_1"])
        assert made.classes == ["1", "2", "10"]
        assert made.positive is None
        assert made.read().scores["m"].tolist() == [[1, 0, 0], [0.25, 0.5, 0.25], [0, 0, 1]]

    def test_columns_in_the_order_of_the_classes(self, tmp_path):
        text = "y,a,b,c\nx,0.5,0.25,0.25\nz,0,0,1\n"
        made = predicted(tmp_path, text, ["m=c,a,b"], classes=["z", "y", "x"])
        assert made.read().codes.tolist() == [2, 0]
        assert made.read().scores["m"].tolist() == [[0.25, 0.5, 0.25], [1, 0, 0]]
        two = predicted(tmp_path, "y,a,b\n1,0.5,0.5\n0,0.25,0.75\n", ["m=a,b"], classes=["0", "1"])
        assert two.read().scores["m"].shape == (2, 2)

    def test_columns_that_do_not_fit(self, tmp_path):
        text = "y,a,b,c\nx,0.5,0.25,0.25\ny,0,0,1\nz,0,0,1\n"
        refuse(tmp_path, text, "'m'", "3 columns", "--classes", scores=["m=a,b,c"])
        refuse(tmp_path, text, "'m'", "2 columns", "3 classes ('x', 'y', 'z')", scores=["m=a,b"])
        refuse(tmp_path, text, "'a'", "1 column of", "3 classes", scores=["a"])
        options = {"scores": ["m=a,b,c"], "classes": ["x", "y"]}
        refuse(tmp_path, text, "3 columns", "2 classes", "single one", **options)
        named = "y,p_x,p_y\nx,0.5,0.5\ny,0,1\n"
        options = {"scores": ["m=p_x,p_y"], "classes": ["y", "x"]}
        refuse(tmp_path, named, "another order", "same order", **options)
        options = {"scores": ["m=a,b,c"], "classes": ["x", "y", "z"], "positive": "x"}
        refuse(tmp_path, text, "positive class must be one of two", **options)

    def test_labels_that_are_not_among_the_classes(self, tmp_path):
        text = "y,p\nno,0\nyes,1\nperhaps,0\n,0.5\nYES,1\n"
        options = {"classes": ["no", "yes"], "drop_missing": True}
        words = ("'y'", "classes 'no', 'yes'", "'perhaps', 'YES'", "2 of 5 rows", "rows 3, 5,")
        refuse(tmp_path, text, *words, **options)
        refuse(tmp_path, "y,p\nno,0\nyes ,1\n", "'yes ' has spaces", **options)
        refuse(tmp_path, BINARY, "'1', '0'", "3 of 3 rows", **options)
        write_table(pa.table({"y": [3, 1, 2], "p": [0.0, 1.0, 0.5]}), tmp_path / "t.parquet")
        message = refuse(tmp_path, tmp_path / "t.parquet", "such as 3,", classes=["1", "2"])
        assert "header" not in message

    def test_classes_that_cannot_be(self, tmp_path):
        refused(lambda: predicted(tmp_path, BINARY, classes=["a"]), "two classes or more", "'a'")
        refused(lambda: predicted(tmp_path, BINARY, classes=["a", "a"]), "differ", "'a', 'a'")
        refused(lambda: predicted(tmp_path, BINARY, classes=["1", "1.0"]), "differ")
        refused(lambda: predicted(tmp_path, BINARY, classes=["a", ""]), "empty")
        many = [str(i) for i in range(1_001)]
        refused(lambda: predicted(tmp_path, BINARY, classes=many), "more than 1,000")

    def test_one_class(self, tmp_path):
        refuse(tmp_path, "y,p\n1,0.5\n1,0.25\n", "only the class '1'", "two classes")
        refuse(tmp_path, "y,p\n1,0.5\n1,0.25\n", "only the class '1'", classes=["0", "1"])
        dropped = "y,p\n1,0.5\n0,\n"
        refuse(tmp_path, dropped, "rows that are left", "only the class '1'", drop_missing=True)
        refuse(tmp_path, "y,p\n,0.5\n,0.5\n", "no label at all", drop_missing=True)

    def test_what_is_no_label(self, tmp_path):
        refuse(tmp_path, "y,p\n0.3,0.5\n1,0.2\n", "not class labels", "'0.3'", "scores?")
        write_table(pa.table({"y": [0.5, 1.0], "p": [0.5, 1.0]}), tmp_path / "t.parquet")
        refuse(tmp_path, tmp_path / "t.parquet", "not class labels", "0.5")
        text = "y,p\nyes,0\nyes ,1\nno,0\n"
        refuse(tmp_path, text, "'yes' and 'yes '", "spaces")
        refuse(tmp_path, "y,p\n0.5,0\nx,1\n1,1\n", "3 classes ('0.5', '1', 'x')")

    @pytest.mark.parametrize("ending", [".csv", ".parquet"])
    def test_identifiers_fail_before_all_is_read(self, tmp_path, ending, monkeypatch):
        n = 100_000
        path = tmp_path / f"t{ending}"
        write_table(pa.table({"y": np.arange(n), "p": np.zeros(n)}), path)
        made = predicted(tmp_path, path)
        monkeypatch.setattr(type(made.table), "read", None)
        for action in (made.read, lambda: list(made.batches()), lambda: made.classes):
            refused(action, "'y'", "more than 1,000 different labels", "identifier")

    def test_classes_that_come_late(self, tmp_path, monkeypatch):
        monkeypatch.setattr(text_files, "_BLOCK", 4_000)
        rows = ["1,0"] * 5_000 + [f"{i},0" for i in range(2_000)]
        refuse(tmp_path, "y,p\n" + "\n".join(rows), "more than 1,000 different labels")


class TestValues:
    def test_missing(self, tmp_path):
        rows = ["1,0.5,1,a"] * 10 + [",,1,a", "0,NA,1,a", "0, nan,1,a", "1,0,null,", "0,0.5,1,a"]
        text = "y,p,w,g\n" + "\n".join(rows) + "\n"
        options = {"weight": "w", "groups": ["g"]}
        words = ("missing values", "--drop-missing", "header is line 1", "table.csv")
        refuse(tmp_path, text, *words, "'y'", "1 of 15 rows (data row 11,", "'p' (3)", **options)
        text = text.replace("\n,,", "\n1,,")
        words += ("'g'", "1 of 15 rows (data row 14,", "'p' (3), 'w' (1)")
        refuse(tmp_path, text, *words, **options)
        refuse(tmp_path, text, "'p'", "3 of 15 rows (data rows 11, 12, 13, counted")
        made = predicted(tmp_path, text, drop_missing=True, **options)
        assert made.read().rows.tolist() == [*range(1, 11), 15]
        assert made.n_dropped == 4

    def test_many_missing(self, tmp_path):
        text = "y,p\n" + "1,\n0,1\n" * 10
        refuse(tmp_path, text, "10 of 20 rows (data rows 1, 3, 5, 7, 9, ...")
        message = refuse(tmp_path, "y,p\n1,\n0,\n", "every one of the 2 rows", drop_missing=True)
        assert "'y', 'p'" in message

    def test_missing_in_stored_columns(self, tmp_path):
        columns = {"y": [1, 0, None, 1], "p": [np.nan, 0.5, 0.5, 0.25], "t": ["", "NA", "b", "a"]}
        write_table(pa.table(columns), tmp_path / "t.parquet")
        message = refuse(tmp_path, tmp_path / "t.parquet", "'y'", "data row 3, counted from 1)")
        assert "header" not in message
        refuse(tmp_path, tmp_path / "t.parquet", "'t'", "2 of 4 rows (data rows 1, 2,", label="t")
        made = predicted(tmp_path, tmp_path / "t.parquet", drop_missing=True)
        assert made.read().rows.tolist() == [2, 4]

    def test_text_in_a_column_of_numbers(self, tmp_path):
        text = "y,p,w\n1,0.5,1\n0,abc,1\n1,0.5,x\n0,,1\n1,93%,1\n"
        words = ("'p'", "'abc', '93%'", "2 of 5 rows (data rows 2, 5,", "header is line 1")
        for drop in (False, True):
            refuse(tmp_path, text, *words, drop_missing=drop)
        refuse(tmp_path, text.replace("abc", "0").replace("%", ""), "'w'", "'x'", weight="w")
        cost = text.replace("abc", "0").replace("93%", "1").replace("0,,1", "0,0,1")
        refuse(tmp_path, cost, "'w'", "'x'", error_cost="w")

    def test_a_column_of_text(self, tmp_path):
        rows = "1,high\n0,low\n1,\n0,middle\n1,low\n"
        words = ("'p' holds text, not numbers: 'high', 'low', 'middle'.", "column of numbers")
        refuse(tmp_path, "y,p\n" + rows, *words)
        table = open_table(file(tmp_path, "y,p\n" + rows)).read()
        write_table(table, tmp_path / "t.parquet")
        refuse(tmp_path, tmp_path / "t.parquet", *words)

    def test_decimal_comma(self, tmp_path):
        text = "y;p\n1;0,93\n0;1\n1;0,5\n"
        refuse(tmp_path, text, "decimal comma", "'0,93', '0,5'", "rows 1, 3,", "decimal point")

    def test_not_probabilities(self, tmp_path):
        text = "y,p\n1,3.5\n0,-2\n1,0.5\n0,1.00001\n"
        words = ("'p' must hold probabilities", "3 of 4 rows (data rows 1, 2, 4,", "-2 to 3.5")
        refuse(tmp_path, text, *words, "logistic", "softmax", "division by 100")
        refuse(tmp_path, "y,p\n1,0.5\n0,-inf\n", "infinite values", "data row 2,")
        refuse(tmp_path, "y,p\n1,0.5\n0,1e999\n", "infinite values")
        late = "y,p\n1,3.5\n0,oops\n1,0.5\n"
        refuse(tmp_path, late, "'oops'")  # found when looking for the first problem

    def test_rounding_is_clipped(self, tmp_path):
        text = "y,p\n1,1.0000005\n0,-0.0000005\n1,0.3\n"
        assert predicted(tmp_path, text).read().scores["p"].tolist() == [1.0, 0.0, 0.3]

    def test_sums(self, tmp_path):
        text = "y,a,b,c\nx,0.5,0.25,0.2505\ny,0.5,0.3,0.5\nz,0,0,0.9\n"
        words = ("'m' ('a', 'b', 'c')", "sum to 1", "2 of 3 rows (data rows 2, 3,", "sums to 1.3")
        refuse(tmp_path, text, *words, "softmax", scores=["m=a,b,c"], classes=["x", "y", "z"])
        two = "y,a,b\n0,0.5,0.5\n1,0.5,0.6\n"
        refuse(tmp_path, two, "sums to 1.1", "data row 2", scores=["m=a,b"], classes=["0", "1"])

    def test_weights_and_costs(self, tmp_path):
        text = "y,p,w\n1,0.5,1\n0,0.5,-2\n1,0.5,-3\n"
        words = ("'w'", "-2.0, -3.0", "2 of 3 rows (data rows 2, 3,", "from -3 to 1")
        refuse(tmp_path, text, *words, "must hold weights of zero or more", weight="w")
        refuse(tmp_path, text, *words, "must hold costs of zero or more", error_cost="w")
        refuse(tmp_path, "y,p,w\n1,0.5,0\n0,0.5,0\n", "every weight", "'w'", "zero", weight="w")
        refuse(tmp_path, "y,p,w\n1,0.5,inf\n0,0.5,0\n", "infinite values", weight="w")
        free = predicted(tmp_path, "y,p,w\n1,0.5,0\n0,0.5,0\n", error_cost="w").read()
        assert free.error_costs.tolist() == [0, 0]

    def test_other_encodings(self, tmp_path):
        text = "y,p\nno,0.5\nné,0.25\n".encode("latin-1")
        refuse(tmp_path, text, "not UTF-8", "line 3")

    def test_columns_of_two_kinds(self, tmp_path):
        refused(
            lambda: predicted(tmp_path, BINARY, ["y"]), "'y' is named as label, group or cluster"
        )
        refused(
            lambda: predicted(tmp_path, BINARY, groups=["p"]),
            "'p' is named as label, group or cluster",
        )
        refused(lambda: predicted(tmp_path, BINARY, weight="W"), "no column 'W'")
        table = open_table(file(tmp_path, BINARY))
        refused(lambda: PredictionFile(table, label="y", models={}), "no scores")

    def test_many_groups(self, tmp_path):
        rows = "".join(f"{i % 2},0.5,{i * 7 % 1000}\n" for i in range(1_000))
        made = predicted(tmp_path, "y,p,g\n" + rows, groups=["g"])
        assert made.groups["g"] == [str(i) for i in range(1_000)]
        assert made.read().groups[:, 0].tolist() == [i * 7 % 1000 for i in range(1_000)]
        assert made.read().groups.dtype == np.uint16
        refuse(tmp_path, "y,p,g\n1,0,a\n0,0,a \n", "'a' and 'a '", groups=["g"])
