"""Cases by name on the command line: shared, worst and new mistakes, and options of groups."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fragility import PreviousPredictions, Report

from .command import fragility, refused


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """New predictions and old ones, of which some cases are missing."""
    rng = np.random.default_rng(2)
    n = 500
    logit = 3.0 * rng.normal(size=n)
    sick = rng.random(n) < 1.0 / (1.0 + np.exp(-logit))
    new = pd.DataFrame(
        {
            "id": [f"P{row}" for row in range(n)],
            "sick": np.where(sick, "yes", "no"),
            "a": 1.0 / (1.0 + np.exp(-1.5 * logit - rng.normal(size=n))),
            "b": 1.0 / (1.0 + np.exp(-1.5 * logit - rng.normal(size=n))),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    old = new.assign(a=np.where(rng.random(n) < 0.1, 1.0 - new["a"], new["a"]))
    old = old.sample(frac=0.9, random_state=1)
    folder = tmp_path_factory.mktemp("cases")
    for name, frame in (("new", new), ("old", old)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder, new, old


BOTH = ("--label", "sick", "--score", "a", "--score", "b", "--no-calibration")


@pytest.mark.parametrize("way", [(), ("--hold", "0")])
def test_cases_of_a_file_are_those_of_arrays(files, way):
    folder, new, old = files
    more = ("--case", "id", "--previous", folder / "old.csv", "--worst", "5")
    ended = fragility("evaluate", folder / "new.csv", *BOTH, *more, "--json", *way)
    assert ended.code == 0, ended.err
    content = json.loads(ended.out)
    models = [{name: part[name] for name in "ab"} for part in (new, old)]
    wanted = Report.from_predictions(
        new["sick"],
        models[0],
        cases=new["id"].tolist(),
        previous=PreviousPredictions(old["sick"], models[1], old["id"].tolist()),
        n_worst=5,
        calibrate=False,
    ).to_dict()
    assert content["n_shared_mistakes"] == wanted["n_shared_mistakes"] > 0
    for one, two in zip(content["shared_mistakes"], wanted["shared_mistakes"], strict=True):
        assert (one["case"], one["true"]) == (two["case"], two["true"])
        assert one["confidence"] == pytest.approx(two["confidence"])
    for one, two in zip(content["new_mistakes"], wanted["new_mistakes"], strict=True):
        assert [one[n] for n in ("n_new", "n_mended", "n_unknown")] == [
            two[n] for n in ("n_new", "n_mended", "n_unknown")
        ]
        assert [case["case"] for case in one["cases"]] == [case["case"] for case in two["cases"]]
    for one, two in zip(content["models"], wanted["models"], strict=True):
        kinds = [[(case["case"], case["kind"]) for case in p["worst_cases"]] for p in (one, two)]
        assert kinds[0] == kinds[1]
    assert "newly wrong above 90 %" in ended.err
    assert "Wrong by all models" in ended.err


def test_cases_are_listed_by_default_for_several_models_only(files):
    folder, _, _ = files
    one = fragility("evaluate", folder / "new.csv", *BOTH[:4], "--no-calibration", "--json")
    assert json.loads(one.out)["models"][0]["worst_cases"] == []
    two = fragility("evaluate", folder / "new.csv", *BOTH, "--json")
    assert len(json.loads(two.out)["models"][0]["worst_cases"]) == 10
    none = fragility("evaluate", folder / "new.csv", *BOTH, "--json", "--worst", "0")
    content = json.loads(none.out)
    assert content["shared_mistakes"] == content["models"][0]["worst_cases"] == []


def test_refused(files, tmp_path):
    folder, new, _ = files
    asked = ("evaluate", folder / "new.csv", *BOTH)
    for options, said in (
        (("--previous", folder / "old.csv"), "--case COLUMN"),
        (("--no-cross",), "repeat --group"),
        (("--min-cell", "5"), "give --group, too"),
    ):
        ended = fragility(*asked, *options)
        assert ended.code == 2
        assert said in ended.err
    refused(fragility(*asked, "--case", "nme"), "there is no column 'nme'")
    for name, ids, said in (
        ("twice", ["P1"] * len(new), "occurs twice"),
        ("gaps", [None, *new["id"][1:]], "names no case in data row 1"),
        ("others", [f"Q{row}" for row in range(len(new))], "in the same way"),
    ):
        path = tmp_path / f"{name}.csv"
        new.assign(id=ids).to_csv(path, index=False)
        refused(fragility(*asked, "--case", "id", "--previous", path), said)


def test_rows_that_are_left_out_are_neither_new_nor_mended(files, tmp_path):
    folder, _, old = files
    asked = ("--label", "sick", "--score", "a", "--no-calibration", "--case", "id", "--json")
    plain = json.loads(
        fragility("evaluate", folder / "new.csv", *asked, "--previous", folder / "old.csv").out
    )["new_mistakes"][0]
    fresh = plain["cases"][0]["case"]
    gone = old.assign(a=old["a"].where(old["id"] != fresh))
    gone.to_csv(tmp_path / "gone.csv", index=False)
    ended = fragility(
        *("evaluate", folder / "new.csv", *asked, "--previous", tmp_path / "gone.csv"),
        "--drop-missing",
    )
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)["new_mistakes"][0]
    assert found["n_new"] == plain["n_new"] - 1
    assert found["n_unknown"] == plain["n_unknown"] + 1


def test_a_changed_label_is_told(files, tmp_path):
    folder, _, old = files
    asked = ("--label", "sick", "--score", "a", "--no-calibration", "--case", "id")
    flipped = old.assign(sick=np.where(old["sick"] == "yes", "no", "yes"))
    flipped.to_csv(tmp_path / "flipped.csv", index=False)
    ended = fragility(
        "evaluate", folder / "new.csv", *asked, "--previous", tmp_path / "flipped.csv"
    )
    assert "(was " in ended.out
