"""What users give becomes a table of cases, or one sentence that says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from fragility.cases.checks import CaseColumns, cases_of_answers, cases_of_predictions

Y = ["no", "yes", "no", "yes"]
P = [0.1, 0.9, 0.4, 0.6]


class TestPredictions:
    def test_classes_are_places_in_sorted_labels(self):
        cases = cases_of_predictions(Y, {"a": P})
        assert cases.labels == ("no", "yes")
        assert cases.positive == 1
        assert cases.y.tolist() == [0, 1, 0, 1]
        assert cases.scores["a"].tolist() == P
        assert cases.weight is None
        assert cases.rows.tolist() == [0, 1, 2, 3]

    def test_two_columns_are_those_of_the_labels_in_their_order(self):
        both = np.stack([P, 1 - np.array(P)], axis=1)
        cases = cases_of_predictions(Y, both, labels=["yes", "no"], pos_label="yes")
        assert cases.labels[cases.positive] == "yes"
        assert cases.scores["model"].tolist() == P

    def test_cases_of_no_weight_are_left_out_and_rows_are_remembered(self):
        columns = CaseColumns([1, 0, 2, 1], groups=["x", "y", "x", "z"], cluster=[1, 2, 1, 3])
        cases = cases_of_predictions([0, 1, 0, 1], {"a": P}, columns)
        assert cases.rows.tolist() == [0, 2, 3]
        assert cases.weight.tolist() == [1.0, 2.0, 1.0]
        assert cases.group_names["group"] == ("x", "y", "z")
        assert cases.groups["group"].tolist() == [0, 0, 2]
        assert cases.cluster.tolist() == [0, 0, 2]

    def test_weights_of_any_size_become_of_order_one(self):
        cases = cases_of_predictions([0, 1, 0, 1], {"a": P}, CaseColumns([1e300, 2e300, 1e299, 1]))
        assert 0.1 < cases.weight.max() < 10.0
        assert cases.weight[1] == 2 * cases.weight[0]

    @pytest.mark.parametrize(
        ("y", "models", "columns", "message"),
        [
            (Y, {"a": [0.1, 0.9, 1.4, 0.6]}, {}, "Model 'a': y_proba must hold probabilities"),
            (Y, {"a": [0.1, 0.9]}, {}, "y_true has 4 samples but y_proba has 2"),
            (Y, {"a": [0.1, 0.9, np.nan, 0.6]}, {}, "has NaN or infinite values in 1 of 4 rows"),
            (Y, {}, {}, "models is empty"),
            (Y, {1: P}, {}, "Models are named by text; got 1"),
            (Y, {"a": P}, {"sample_weight": [1, -1, 1, 1]}, "negative values"),
            (Y, {"a": P}, {"cluster": ["x"] * 4}, "at least 2 clusters are needed"),
            (Y, {"a": P}, {"groups": {"g": [1, 2]}}, "groups"),
        ],
    )
    def test_what_is_refused(self, y, models, columns, message):
        with pytest.raises(ValueError, match=message):
            cases_of_predictions(y, models, CaseColumns(**columns))


class TestAnswers:
    def test_models_are_right_on_different_cases_and_abstain(self):
        cases = cases_of_answers(
            {"a": [1, 0, 1], "b": [True, True, False]},
            {"a": [0.9, 0.2, 0.6], "b": [0.5, 0.5, np.nan]},
            {"a": [0, 0, 0], "b": [0, 0, 1]},
        )
        assert cases.answers
        assert cases.truth("a").tolist() == [1, 0, 1]
        assert cases.scores["b"].tolist()[:2] == [0.5, 0.5]
        assert np.isnan(cases.scores["b"][2])

    @pytest.mark.parametrize(
        ("correct", "confidence", "message"),
        [
            ([1, 0.5], [0.1, 0.2], "must be true or false"),
            ([1, 0], [0.1, 20.0], "from 0 to 1"),
            ([], [], "correct is empty"),
            ({"a": [1, 0]}, {"b": [0.1, 0.2]}, "give both for the same models"),
            (
                {"a": [1, 0], "b": [1]},
                {"a": [0.1, 0.2], "b": [0.3]},
                "have different numbers of cases",
            ),
        ],
    )
    def test_what_is_refused(self, correct, confidence, message):
        with pytest.raises(ValueError, match=message):
            cases_of_answers(correct, confidence)
