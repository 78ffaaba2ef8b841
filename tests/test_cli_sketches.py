"""The commands that sketch, merge and compare."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch, compare_sketches

from .command import fragility, patients, refused, write_csv

ASKED = ("--label", "sick", "--score", "fair")


def cases(n=800, seed=0, boldness=1.0):
    rng = np.random.default_rng(seed)
    logit = 2 * rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return y, 1 / (1 + np.exp(-boldness * logit))


def sketched(path, y, p, **options):
    path.write_bytes(FragilitySketch(**options).update(y, p).to_bytes())
    return path


def test_parts_of_any_kind_make_the_sketch_of_the_whole(tmp_path):
    y, p = cases()
    p[:3] = 0.0, 1.0, 0.5
    parts = []
    for number, own in enumerate(np.array_split(np.arange(y.size), 3)):
        parts.append(tmp_path / f"part-{number}.{'csv' if number == 1 else 'parquet'}")
        columns = {"sick": y[own], "fair": p[own], "weight": own % 3}
        if number == 1:
            write_csv(parts[-1], {name: values.tolist() for name, values in columns.items()})
        else:
            pq.write_table(pa.table(columns), parts[-1], row_group_size=100)
    for weight, weights in ((), None), (("--weight", "weight"), np.arange(y.size) % 3):
        output = tmp_path / "day.fsk"
        ended = fragility("sketch", *parts, "-o", output, *ASKED, *weight)
        assert (ended.code, ended.out) == (0, "")
        wanted = FragilitySketch().update(y, p, weights)
        assert output.read_bytes() == wanted.to_bytes()
        counts = wanted.support.tolist()
        assert f"{sum(counts)} cases (0: {counts[0]}, 1: {counts[1]})" in ended.err


def test_patterns_and_folders(tmp_path):
    y, p = cases(90)
    output, parts = tmp_path / "day.fsk", tmp_path / "parts"
    parts.mkdir()
    for number, own in enumerate(np.array_split(np.arange(y.size), 3)):
        pq.write_table(pa.table({"sick": y[own], "fair": p[own]}), parts / f"{number}.parquet")
    wanted = FragilitySketch().update(y, p).to_bytes()
    for given in (f"{parts}/*.parquet",), (parts,), (f"{parts}/[01].parquet", parts / "2.parquet"):
        assert fragility("sketch", *given, "-o", output, *ASKED, "--force").code == 0
        assert output.read_bytes() == wanted
    for given in (f"{parts}/[01].parquet", parts), (parts / "1.parquet", f"{parts}/*.parquet"):
        twice = fragility("sketch", *given, "-o", output, *ASKED, "--force")
        refused(twice, "the same file as", "count twice")
    (parts / "1.parquet").write_bytes((parts / "1.parquet").read_bytes()[:-20])
    damaged = fragility("sketch", f"{parts}/*.parquet", "-o", output, *ASKED, "--force")
    refused(damaged, "1.parquet")
    assert output.read_bytes() == wanted


def test_merging_sketches_is_sketching_all(tmp_path):
    y, p = cases()
    halves = slice(None, 300), slice(300, None)
    files = [sketched(tmp_path / f"{k}.fsk", y[h], p[h]) for k, h in enumerate(halves)]
    for order in (files, files[::-1]):
        ended = fragility("merge", *order, "-o", tmp_path / "week.fsk")
        assert (ended.code, ended.out) == (0, "")
        assert (tmp_path / "week.fsk").read_bytes() == FragilitySketch().update(y, p).to_bytes()
    sketch = FragilitySketch().update(y, p)
    assert f"800 cases (0: {sketch.support[0]}, 1: {sketch.support[1]})" in ended.err


def test_a_part_may_lack_a_class(tmp_path):
    parts = [
        write_csv(tmp_path / f"{k}.csv", {"sick": sick, "fair": [0.2, 0.7]})
        for k, sick in enumerate([["no", "no"], ["yes", "no"]])
    ]
    output = tmp_path / "d.fsk"
    assert fragility("sketch", *parts, "-o", output, *ASKED).code == 0
    wanted = FragilitySketch().update(["no", "no", "yes", "no"], [0.2, 0.7, 0.2, 0.7])
    assert output.read_bytes() == wanted.to_bytes()
    refused(fragility("sketch", parts[0], "-o", output, *ASKED), "only the class 'no'")
    alone = ("--classes", "no,yes")
    assert fragility("sketch", parts[0], "-o", output, *ASKED, *alone).code == 0
    wanted = FragilitySketch(labels=["no", "yes"]).update(["no", "no"], [0.2, 0.7])
    assert output.read_bytes() == wanted.to_bytes()


def test_a_parquet_file_among_others_may_be_empty(tmp_path):
    """As the shell gives them for a pattern; the pattern itself may have such files, too."""
    rows = pa.table({"sick": [0, 1, 0], "fair": [0.3, 0.6, 0.7]})
    parts = [tmp_path / f"part-{k}.parquet" for k in range(3)]
    for part, own in zip(parts, (rows[:0], rows, rows[:0]), strict=True):
        pq.write_table(own, part)
    outputs = [tmp_path / "parts.fsk", tmp_path / "pattern.fsk"]
    for output, given in zip(outputs, (parts, [tmp_path / "*.parquet"]), strict=True):
        assert fragility("sketch", *given, "-o", output, *ASKED).code == 0
    wanted = FragilitySketch().update([0, 1, 0], [0.3, 0.6, 0.7]).to_bytes()
    assert [output.read_bytes() for output in outputs] == [wanted, wanted]
    empty = tmp_path / "empty"
    empty.mkdir()
    pq.write_table(rows[:0], empty / "0.parquet")
    folder = fragility("sketch", parts[1], empty, "-o", outputs[0], *ASKED)
    assert (folder.code, outputs[0].read_bytes()) == (0, wanted)
    none = ("sketch", parts[0], parts[2], "-o", tmp_path / "none.fsk", *ASKED)
    refused(fragility(*none, "--classes", "0,1"), "no rows, here and in all files")
    refused(fragility(*none), "no label at all")


def test_the_positive_class_and_bins(tmp_path):
    csv = write_csv(tmp_path / "d.csv", {"sick": [0, 1, 0], "fair": [0.9, 0.2, 0.4]})
    output = tmp_path / "d.fsk"
    assert fragility("sketch", csv, "-o", output, *ASKED, "--positive", "0", "--bins", 64).code == 0
    wanted = FragilitySketch(64, pos_label=0).update([0, 1, 0], [0.9, 0.2, 0.4])
    assert output.read_bytes() == wanted.to_bytes()


def test_the_later_of_ordered_categories_is_positive(tmp_path):
    for k in range(2):
        label = pa.DictionaryArray.from_arrays([0, 1, k], ["sick", "well"], ordered=True)
        parts = pa.table({"sick": label, "fair": [0.1, 0.8, 0.6]})
        pq.write_table(parts, tmp_path / f"{k}.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    assert fragility("sketch", *files, "-o", tmp_path / "d.fsk", *ASKED).code == 0
    found = FragilitySketch.from_bytes((tmp_path / "d.fsk").read_bytes())
    assert found._content()[0]["pos_label"] == "well"


def test_scores_that_are_never_below_a_half_are_doubted_in_all_files_together(tmp_path):
    """A part may have no rows, or none that are left, and none of its scores below a half."""
    rows = {"sick": [0, 1], "confidence": [0.6, 0.9]}
    files = [write_csv(tmp_path / "a.csv", rows), tmp_path / "b.csv", tmp_path / "c.parquet"]
    files[1].write_text("sick,confidence\n,0.5\n1,\n")
    pq.write_table(pa.table(rows)[:0], files[2])
    asked = ("-o", tmp_path / "d.fsk", "--label", "sick", "--score", "confidence", "--drop-missing")
    doubted = fragility("sketch", *files, *asked)
    assert (doubted.code, doubted.err.count("never below one half")) == (0, 1)
    more = write_csv(tmp_path / "d.csv", {"sick": [0, 1], "confidence": [0.1, 0.9]})
    plain = fragility("sketch", *files, more, *asked)
    assert (plain.code, "never below one half" in plain.err) == (0, False)
    answers = [write_csv(tmp_path / f"{k}.csv", {"correct": [0, 1], "p": [0.3, 0.9]}) for k in "ef"]
    told = fragility("sketch", *answers, *asked[:2], "--label", "correct", "--score", "p")
    assert (told.code, told.err.count("whether answers were right")) == (0, 1)


def test_a_label_too_many_is_told_with_its_file(tmp_path):
    files = [write_csv(tmp_path / f"{k}.csv", {"sick": [0, 1], "fair": [0.2, 0.7]}) for k in "abc"]
    write_csv(files[1], {"sick": [1, 2], "fair": [0.2, 0.7]})
    refused(fragility("sketch", *files, "-o", tmp_path / "d.fsk", *ASKED), f"'2' in {files[1]}")
    # An identifier is refused before all of it is in memory.
    rows = {"sick": [f"case {k}" for k in range(2_000)], "fair": [0.5] * 2_000}
    write_csv(files[0], rows)
    files[1].write_bytes(b"sick,fair\n1\n")
    wrong = fragility("sketch", *files, "-o", tmp_path / "d.fsk", *ASKED)
    refused(wrong, "a.csv: column 'sick' holds more than 1,000 different labels")


def test_an_order_that_a_later_file_does_not_hold_is_refused(tmp_path):
    label = pa.DictionaryArray.from_arrays([0, 1, 0], ["well", "sick"], ordered=True)
    part, files = pa.table({"sick": label, "fair": [0.1, 0.8, 0.6]}), []
    for k, holds in enumerate((True, False)):
        files.append(tmp_path / f"{k}.parquet")
        pq.write_table(part, files[-1], use_dictionary=holds)
    asked = ("-o", tmp_path / "d.fsk", *ASKED)
    refused(fragility("sketch", *files, *asked), "1.parquet", "does not hold the order")
    # Of text without an order a file says nothing.
    pq.write_table(part.set_column(0, "sick", label.cast("string")), files[1], use_dictionary=False)
    assert fragility("sketch", *files, *asked).code == 0


def test_an_index_that_bins_cannot_tell_is_said_to_need_more_of_them(tmp_path):
    fine, coarse = (sketched(tmp_path / f"{n}.fsk", *cases(300), n_bins=n) for n in (4096, 16))
    ended = fragility("drift", fine, coarse)
    assert ended.code == 0
    assert "bins of 16.fsk are too few to tell the index (sketch with more)" in ended.out
    one = sketched(tmp_path / "one.fsk", [0, 0, 1], [0.1, 0.7, 0.6])
    assert "a class has a single sample. The intervals" in fragility("drift", fine, one).out


def test_several_classes_need_their_names(tmp_path):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    columns = {"sick": y.tolist()} | {name: p[:, k].tolist() for k, name in enumerate("abc")}
    csv, output = write_csv(tmp_path / "d.csv", columns), tmp_path / "d.fsk"
    asked = ("sketch", csv, "-o", output, "--label", "sick", "--score", "m=a,b,c")
    refused(fragility(*asked), "name the classes (--classes)")
    assert fragility(*asked, "--classes", "0,1,2").code == 0
    assert output.read_bytes() == FragilitySketch().update(y, p).to_bytes()
    other = tmp_path / "e.fsk"
    other.write_bytes(output.read_bytes())
    refused(fragility("drift", output, other), "several classes cannot tell an interval")


def test_missing_values(tmp_path):
    csv = tmp_path / "d.csv"
    csv.write_text("sick,fair\n0,0.2\n1,\n1,0.7\n")
    output = tmp_path / "d.fsk"
    refused(fragility("sketch", csv, "-o", output, *ASKED), "fair", "missing")
    assert not output.exists()
    ended = fragility("sketch", csv, "-o", output, *ASKED, "--drop-missing")
    assert ended.code == 0
    assert "1 rows have missing values and are left out" in ended.err
    assert output.read_bytes() == FragilitySketch().update([0, 1], [0.2, 0.7]).to_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("sick,fair\n0,0.2\n1,1.5\n", ["fair", "1.5"]),
        ("sick,fair\n0,0.2\n1,x\n", ["fair", "x"]),
        ("sick,fair\n0,0.2\n1,0.3\n2,0.4\n", ["3 classes"]),
        ("sick,other\n0,0.2\n1,0.3\n", ["no column 'fair'"]),
    ],
)
def test_bad_tables_write_nothing(tmp_path, content, words):
    csv, output = tmp_path / "d.csv", tmp_path / "d.fsk"
    csv.write_text(content)
    refused(fragility("sketch", csv, "-o", output, *ASKED), *words)
    assert not output.exists()


def test_drift_says_what_changed(tmp_path):
    week = sketched(tmp_path / "week.fsk", *cases(6000, 1))
    day = sketched(tmp_path / "day.fsk", *cases(1500, 2, boldness=2.0))
    ended = fragility("drift", week, day)
    assert (ended.code, ended.err) == (1, "")
    found = compare_sketches(*(FragilitySketch.from_bytes(f.read_bytes()) for f in (day, week)))
    assert found.told("day.fsk", "week.fsk") in ended.out
    assert "day.fsk is more fragile" in ended.out
    for name in ("Fragility Index", "95 % interval", "ratio", "AUC", "Brier score", "cases of 1"):
        assert name in ended.out
    assert f"{found.b:.5g}" in ended.out
    assert "The ratio, which does not depend on the scale" in ended.out
    swapped = fragility("drift", day, week)
    assert swapped.code == 1
    assert "week.fsk is less fragile" in swapped.out


def test_drift_of_the_same_kind_of_cases(tmp_path):
    files = [sketched(tmp_path / f"{k}.fsk", *cases(1000, k)) for k in range(2)]
    ended = fragility("drift", *files)
    assert ended.code == 0
    assert "chance alone can explain that" in ended.out


def test_drift_in_json(tmp_path):
    files = [sketched(tmp_path / f"{k}.fsk", *cases(1000, k)) for k in range(2)]
    ended = fragility("drift", *files, "--json", "--confidence-level", 0.9)
    found = json.loads(ended.out)
    assert "Fragility Index" in ended.err
    old, new = (FragilitySketch.from_bytes(file.read_bytes()).fragility() for file in files)
    assert found["changed"] is False
    assert found["now"]["fragility_index"] == new.value
    assert found["now"]["interval"] == list(new.interval(0.9))
    assert found["before"]["ratio"] == old.ratio
    assert found["before"]["auc"] == list(old.auc.bounds)
    assert found["tests"]["fragility_index"]["difference"] == new.value - old.value
    assert found["confidence"] == 0.9


def test_drift_without_a_test(tmp_path):
    """An index of 0 has no test; its interval is compared instead."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    apart = sketched(tmp_path / "apart.fsk", y, 0.1 + 0.8 * y)
    mixed = sketched(tmp_path / "mixed.fsk", *cases(4000, boldness=4.0))
    ended = fragility("drift", apart, mixed)
    assert ended.code == 1
    assert "No test of a difference: the index of apart.fsk is 0 or infinite" in ended.out
    assert "do not overlap: they differ" in ended.out
    few = sketched(tmp_path / "few.fsk", [0, 1, 0, 1], [0.1, 0.9, 0.1, 0.9])
    ended = fragility("drift", few, mixed)
    assert ended.code == 0
    assert "overlap: none is shown" in ended.out


@pytest.fixture
def files(tmp_path):
    """Files that are no sketches, or do not go with `good.fsk`."""
    y, p = cases(200)
    good = FragilitySketch().update(y, p).to_bytes()
    future = good[:16] + b"\x09" + good[17:-32]
    made = {
        "good": good,
        "foreign": b"PAR1 and so on",
        "empty": b"",
        "short": good[:-9],
        "flipped": good[:200] + bytes([good[200] ^ 1]) + good[201:],
        "future": future + hashlib.sha256(future).digest(),
        "bins": FragilitySketch(64).update(y, p).to_bytes(),
        "classes": FragilitySketch().update(np.array(["no", "yes"])[y], p).to_bytes(),
        "reversed": FragilitySketch(pos_label=0).update(y, p).to_bytes(),
        "no rows": FragilitySketch(labels=[0, 1]).to_bytes(),
        "nothing": FragilitySketch().to_bytes(),
        "one class": FragilitySketch(labels=[0, 1]).update([0, 0], [0.1, 0.2]).to_bytes(),
        "weights": FragilitySketch().update(y, p, np.arange(200) % 5 + 1).to_bytes(),
    }
    for name, content in made.items():
        (tmp_path / f"{name}.fsk").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("foreign", ["foreign.fsk: These bytes are not a FragilitySketch."]),
        ("empty", ["empty.fsk: These bytes are not a FragilitySketch."]),
        ("short", ["short.fsk: The bytes of this FragilitySketch are damaged: wrong checksum."]),
        ("flipped", ["flipped.fsk: The bytes of this FragilitySketch are damaged"]),
        ("future", ["future.fsk: This FragilitySketch has format 9"]),
        ("absent", ["absent.fsk: this file cannot be opened"]),
        ("bins", ["bins.fsk", "differ in n_bins: 4096 and 64"]),
        ("classes", ["classes.fsk", "differ in labels: [0, 1] and ['no', 'yes']"]),
        ("reversed", ["reversed.fsk", "differ in the positive class"]),
    ],
)
def test_what_does_not_merge(files, name, words):
    ended = fragility("merge", files / "good.fsk", files / f"{name}.fsk", "-o", files / "out.fsk")
    refused(ended, *words)
    assert not (files / "out.fsk").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("foreign", ["foreign.fsk: These bytes are not a FragilitySketch."]),
        ("classes", ["cannot be compared", "differ in labels"]),
        ("reversed", ["cannot be compared", "differ in the positive class: 0 and 1"]),
        ("nothing", ["cannot be compared", "The sketch is empty"]),
        ("no rows", ["cannot be compared", "No class has samples"]),
        ("one class", ["cannot be compared", "Only one class has samples"]),
        ("weights", ["cannot be compared", "different weights cannot tell an interval"]),
        ("good", ["the same file as", "count twice"]),
    ],
)
def test_what_cannot_be_compared(files, name, words):
    refused(fragility("drift", files / "good.fsk", files / f"{name}.fsk"), *words)


def test_sketches_of_different_bins_are_compared(files):
    assert fragility("drift", files / "good.fsk", files / "bins.fsk").code == 0


def test_no_file_is_replaced_by_mistake(files, tmp_path):
    csv = write_csv(tmp_path / "d.csv", patients(60))
    notes = tmp_path / "notes.fsk"
    notes.write_text("not a sketch")
    good = files / "good.fsk"
    before = good.read_bytes()
    refused(fragility("sketch", csv, "-o", notes, *ASKED), "exists and is not a sketch")
    refused(fragility("merge", good, "-o", notes), "exists and is not a sketch")
    refused(fragility("merge", good, "-o", good, "--force"), "is the same file as the input")
    assert fragility("sketch", csv, "-o", notes, *ASKED, "--force").code == 0
    assert fragility("sketch", csv, "-o", notes, *ASKED).code == 0  # a sketch by a sketch
    assert good.read_bytes() == before
    ended = fragility("sketch", csv, "-o", tmp_path / "day.txt", *ASKED)
    assert ended.code == 2
    assert "must end in .fsk" in ended.err


def test_a_file_counts_once(files):
    good, link = files / "good.fsk", files / "link.fsk"
    os.link(good, link)
    for first, second in ((good, good), (good, link)):
        refused(fragility("merge", first, second, "-o", files / "o.fsk"), "would count twice")
    csv = write_csv(files / "d.csv", patients(60))
    refused(fragility("sketch", csv, csv, "-o", files / "o.fsk", *ASKED), "would count twice")
