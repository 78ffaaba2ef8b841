"""Whether answers were right, with a confidence: read as two classes, but not without a word."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fragility.exceptions import AnswersWarning
from fragility.tables import PredictionFile, open_table
from tests.command import fragility, write_csv

N = 80
RNG = np.random.default_rng(3)
CONFIDENCE = 0.5 + 0.5 * RNG.random(N)
RIGHT = RNG.random(N) < CONFIDENCE


def predictions(folder, label, score, truth=RIGHT, values=("0", "1"), p=CONFIDENCE, **options):
    columns = {label: np.where(truth, values[1], values[0]).tolist(), score: p.tolist()}
    path = write_csv(folder / "answers.csv", columns)
    return PredictionFile(open_table(path), label=label, models={score: [score]}, **options)


def warned(file):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file.read()
        list(file.batches())
        list(file.batches())
    return [str(w.message) for w in caught if w.category is AnswersWarning]


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("correct", ("0", "1")),
        ("is_correct", ("False", "True")),
        ("Answer correct", ("no", "yes")),
        ("isCorrect", ("0", "1")),
        ("hit", ("0", "1")),
        ("is_wrong", ("0", "1")),
        ("outcome", ("wrong", "right")),
        ("outcome", ("Incorrect", "Correct")),
        ("outcome", ("wrong", "correct")),
    ],
)
@pytest.mark.parametrize("score", ["confidence", "p"])
def test_labels_that_say_whether_an_answer_was_right(tmp_path, label, values, score):
    file = predictions(tmp_path, label, score, values=values)
    (message,) = warned(file)
    for word in ("answers.csv", f"{label!r}", f"{score!r}", f"{file.positive!r}", "--positive"):
        assert word in message
    for word in ("two classes", "probability of each class"):
        assert word in message
    column = f"'{label}'" if " " in label else label  # as a shell wants it
    assert f"--correct {column} --confidence {score}" in message


def test_a_confidence_that_is_never_below_one_half(tmp_path):
    for score in ("confidence", "conf", "max_prob", "Certainty", "model confidence", "top1_prob"):
        (message,) = warned(predictions(tmp_path, "sick", score, values=("no", "yes")))
        for word in (f"{score!r}", "'yes'", "never below one half", "1 - ", "--correct COLUMN"):
            assert word in message
        assert not warned(predictions(tmp_path, "sick", score, p=2 * CONFIDENCE - 1))


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ("sick", "p"),
        ("correct_class", "p"),
        ("correct", "p_correct"),
        ("hit_rate_class", "p"),
        ("correction", "p"),
        ("copyright", "p"),
        ("bright", "p"),
    ],
)
def test_other_columns_are_not_suspected(tmp_path, label, score):
    assert not warned(predictions(tmp_path, label, score))


def test_what_is_said_on_purpose_is_not_warned_of(tmp_path):
    assert not warned(predictions(tmp_path, "correct", "confidence", positive="1"))
    assert not warned(predictions(tmp_path, "sick", "confidence", positive="1"))


def test_two_columns_of_scores_are_two_classes(tmp_path):
    path = write_csv(
        tmp_path / "a.csv",
        {"correct": RIGHT.astype(int).tolist(), "p_0": 1 - CONFIDENCE, "p_1": CONFIDENCE},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PredictionFile(open_table(path), label="correct", models={"m": ["p_0", "p_1"]}).read()


@pytest.mark.parametrize("options", [(), ("--hold", "0")])
def test_the_command_warns_once_and_goes_on(tmp_path, options):
    predictions(tmp_path, "correct", "confidence")
    asked = ("evaluate", tmp_path / "answers.csv", "--label", "correct", "--score", "confidence")
    ended = fragility(*asked, *options)
    assert ended.code == 0
    assert "Fragility Index" in ended.out
    (line,) = ended.err.strip().splitlines()
    assert line.startswith("Warning: ")
    assert "'correct'" in line
    assert fragility(*asked, *options, "--positive", "1").err == ""
