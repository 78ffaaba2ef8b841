"""Policies as JSON: what is written is read again, and what is damaged is refused in one line."""

from __future__ import annotations

import copy
import json
from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragility import best_policy
from fragility.deferral import Policy
from fragility.deferral.policy_files import load_policy

from .confident_models import classes_drawn, model


def policies():
    """Policies of every kind, by name."""
    y, p = model(0, 300)
    codes, rows = classes_drawn(np.random.default_rng(0), 200)
    matrix = [[0, 1], [5, 0.5]]
    names = np.array(["well", "sick"])
    return {
        "two classes": best_policy(y, p, error_cost=matrix, review_cost=0.4, capacity=0.5),
        "names": best_policy(names[y], 1 - p, error_cost=3, pos_label="well"),
        "truth": best_policy(y == 1, p, error_cost=3, reviewer_error=0.1),
        "never": best_policy(y, p, error_cost=1e6),
        "always": best_policy(y, p, error_cost=[[0, 1e6], [0, 0]], review_cost=9),
        "three classes": best_policy(codes, rows, error_cost=4),
        "three, never": best_policy(codes, rows, error_cost=1e6),
        "three, always": best_policy(codes, rows, error_cost=1, review_cost=50),
        "confidence": best_policy(codes, rows, error_cost=4, rule="confidence"),
        "guarantees": best_policy(y, p, error_cost=3, max_error_share=0.1, max_misses=0.001),
        "costs by case": best_policy(y, p, error_cost=1.0 + y, review_cost=0.3),
        "fragility": best_policy(y, p, error_cost=4, criterion="fragility", slack=0.0),
    }


POLICIES = policies()
EXAMPLE = POLICIES["two classes"].to_dict()
PROMISE = {"name": "max_misses", "limit": 0.1, "level": 0.95, "kept": True, "reason": ""}


def alike(one, other):
    """Equal, NaN to NaN."""
    if isinstance(one, float) and isinstance(other, float) and isnan(one):
        return isnan(other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


@pytest.mark.parametrize("name", POLICIES)
def test_read_again(name, tmp_path):
    policy = POLICIES[name]
    path = tmp_path / "policy.json"
    path.write_text(policy.to_json(), encoding="utf-8")
    stored = json.loads(policy.to_json(), parse_constant=pytest.fail)  # strict JSON
    for again in (Policy.from_dict(policy.to_dict()), Policy.from_dict(stored), load_policy(path)):
        assert again.to_dict() == policy.to_dict()
        for field in Policy.__dataclass_fields__:
            if field != "costs" and not field.endswith("interval"):
                assert alike(getattr(again, field), getattr(policy, field)), field
        assert repr(again).splitlines()[:2] == repr(policy).splitlines()[:2]
        if len(policy.labels) == 2:
            scores = np.linspace(0, 1, 41)
        else:
            scores = np.random.default_rng(1).dirichlet(np.ones(3), 41)
        one, other = policy.decide(scores), again.decide(scores)
        for field in ("label", "automate", "score", "saving"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
        assert one.reason.tolist() == other.reason.tolist()


def test_what_is_infinite_is_null():
    assert POLICIES["never"].upper == inf
    assert POLICIES["never"].to_dict()["decision"]["upper"] is None
    assert POLICIES["never"].to_dict()["decision"]["lower"] == 0.0
    always = POLICIES["always"]
    assert always.lower == always.upper == inf
    assert always.to_dict()["decision"]["lower"] is None
    assert Policy.from_dict(always.to_dict()).lower == inf
    assert POLICIES["three classes"].to_dict()["misses"] is None
    assert POLICIES["three, always"].to_dict()["decision"]["limit"] is None
    assert POLICIES["fragility"].to_dict()["fragility"] is None
    assert Policy.from_dict(POLICIES["fragility"].to_dict()).fragility == inf
    assert POLICIES["names"].to_dict()["positive"] == "well"
    assert POLICIES["costs by case"].to_dict()["costs"]["error_cost"] == pytest.approx(
        float(np.mean(1.0 + model(0, 300)[0]))
    )
    made = POLICIES["guarantees"].to_dict()["guarantees"]
    assert [part["kept"] for part in made] == [True, False]
    assert "too few" in made[1]["reason"]


def changed(*keys, value=None, drop=False):
    """The example with one entry changed."""
    found = copy.deepcopy(EXAMPLE)
    inner = found
    for key in keys[:-1]:
        inner = inner[key]
    if drop:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "it is not a policy"),
        (None, "it is not a policy"),
        ({}, "it is not a policy"),
        ("fragility policy", "it is not a policy"),
        (changed("format", value="fragility report"), "it is not a policy"),
        (changed("version", value=2), "it has version 2, this one reads 1"),
        (changed("version", drop=True), "it has version None"),
        (changed("classes", value=[1]), "classes must be two different ones"),
        (changed("classes", value=[1, 1]), "classes must be two different ones"),
        (changed("classes", value=[1, [2]]), "classes must be two different ones"),
        (changed("classes", value="01"), "classes must be a list"),
        (changed("positive", value=7), "positive must be one of"),
        (changed("positive", value=[1]), "positive must be one of"),
        (changed("columns", value=[1]), "columns must name"),
        (changed("columns", value=["a", "b", "c"]), "columns must name"),
        (changed("decision", value=3), "decision must be an object"),
        (changed("decision", "lower", drop=True), "lower is missing"),
        (changed("decision", "lower", value=0.999), "lower must be from 0 to upper"),
        (changed("decision", "lower", value=None), "lower must be from 0 to upper"),
        (changed("decision", "lower", value=-0.1), "lower must be from 0 to upper"),
        (changed("decision", "lower", value="0.1"), "lower must be a number or null"),
        (changed("decision", "lower", value=True), "lower must be a number or null"),
        (changed("decision", "upper", value=nan), "upper must be a number or null"),
        (changed("decision", "upper", value=10**400), "upper must be a number or null"),
        (changed("decision", "slope", value=None), "slope and intercept must be numbers"),
        (changed("costs", "review_cost", drop=True), "costs must have just"),
        (changed("costs", "review_cost", value=-1), "review_cost must be zero or more"),
        (changed("costs", "review_cost", value="one"), "review_cost must be a number"),
        (changed("costs", "error_cost", value="much"), "error_cost must be a number or a matrix"),
        (changed("costs", "error_cost", value=[1, 2, 3]), "error_cost"),
        (changed("costs", "error_cost", value=[[0, 1], [2]]), "error_cost"),
        (changed("costs", "error_cost", value=[[0, "x"], [2, 0]]), "error_cost"),
        (changed("costs", "error_cost", value=[[3, 1], [2, 0]]), "cheaper than being right"),
        (changed("costs", "capacity", value=40), "capacity must be a share"),
        (changed("cost", value="low"), "cost must be a number or null"),
        (changed("cost", drop=True), "cost is missing"),
        (changed("cost_interval", value=[1]), "cost_interval must have two ends"),
        (changed("cost_interval", value=[1, "x"]), "cost_interval must be a number or null"),
        (changed("guarantees", value=[{}]), "a guarantee must have name"),
        (changed("guarantees", value=[{**PROMISE, "name": "level"}]), "an unknown name"),
        (changed("guarantees", value=[{**PROMISE, "name": []}]), "an unknown name"),
        (changed("guarantees", value=[{**PROMISE, "limit": 1}]), "no share as its limit"),
        (changed("guarantees", value=[{**PROMISE, "kept": 1}]), "a guarantee is odd"),
        (changed("guarantees", value=3), "guarantees must be a list"),
        (changed("rule", value="best"), "rule must be one of"),
        (changed("rule", value=["auto"]), "rule must be one of"),
        (changed("criterion", value={}), "criterion is"),
        (changed("n_samples", value=0), "n_samples must be a number of cases"),
        (changed("n_samples", value=True), "n_samples must be a number of cases"),
        (changed("within_capacity", value=1), "within_capacity must be true or false"),
        (changed("confidence", value=None), "confidence must lie between 0 and 1"),
        (changed("classes", value=[0, 0.5]), "classes must be two different ones"),
        (changed("classes", value=[True, 1]), "classes must be two different ones"),
        (changed("notes", value=[3]), "notes must be sentences"),
    ],
)
def test_damaged(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Policy.from_dict(content)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(content))
    refused = "NaN is not a number" if "NaN" in path.read_text() else message
    with pytest.raises(ValueError, match=refused) as raised:
        load_policy(path)
    assert "is not a policy that can be used" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is not JSON"),
        (b"lower,upper\n0.1,0.9\n", "it is not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "it is not UTF-8 text"),
        (b"{" + b'"a":{' * 100_000, "nested too deeply|not JSON"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"cost": NaN}', "NaN is not a number in strict JSON"),
        (b'{"cost": -Infinity}', "-Infinity is not a number in strict JSON"),
        (b'{"cost": ' + b"9" * 10_000 + b"}", "policy"),
        (b" " * (16 * 2**20 + 1), "more than 16 MiB"),
        (b"3", "it is not a policy"),
    ],
)
def test_files_that_are_no_policies(data, message, tmp_path):
    path = tmp_path / "policy.json"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as raised:
        load_policy(path)
    assert "Make one with `fragility cost" in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        load_policy(tmp_path / "none.json")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        load_policy(tmp_path)
    path = tmp_path / "marked.json"
    path.write_bytes(b"\xef\xbb\xbf" + POLICIES["names"].to_json().encode())
    assert load_policy(path).labels == POLICIES["names"].labels


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, -1e308, 0.5, -0.0, 1e-320])
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["auto", "max_misses", "level", "fragility policy"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def places(content, path=()):
    """Paths to every entry of nested lists and dictionaries."""
    entries = content.items() if isinstance(content, dict) else enumerate(content)
    for key, inner in entries:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


@settings(max_examples=200)
@given(st.data())
def test_mutated_policies_are_refused_or_work(data):
    name = data.draw(st.sampled_from(["two classes", "three classes", "guarantees"]))
    content = copy.deepcopy(POLICIES[name].to_dict())
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(places(content), key=str)))
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        if isinstance(inner, dict) and data.draw(st.booleans()):
            del inner[path[-1]]
        else:
            inner[path[-1]] = data.draw(values)
    try:
        policy = Policy.from_dict(content)
    except ValueError:
        return
    policy.to_json()
    repr(policy)
    policy.sentences()
    n_classes = len(policy.labels)
    made = policy.decide(np.full((3, n_classes), 1 / n_classes))
    assert len(made.reason) == 3
