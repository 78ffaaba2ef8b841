"""The recipes of docs/harness_logs.md, on small logs of each format, through the real command."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .command import ENVIRONMENT
from .reference.pairs import bisected_index, pair_matrix

pytestmark = pytest.mark.outside
TEXT = (Path(__file__).parent.parent / "docs" / "harness_logs.md").read_text(encoding="utf-8")
SCRIPTS = {
    re.match(r"# (\S+\.py)\n", block)[1]: block
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
}
COMMANDS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)


def command(*words):
    """The one command of the page that has all of these words."""
    (found,) = [text for text in COMMANDS if all(word in text for word in words)]
    return found


def shell(folder, text):
    """Run a command of the page as it stands, printing JSON without calibration."""
    for name, script in SCRIPTS.items():
        (folder / name).write_text(script, encoding="utf-8")
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, line in {
        "fragility": f'exec {sys.executable} -m fragility "$@" --json --no-calibration',
        "python": f'exec {sys.executable} "$@"',
        # What `inspect log dump` does for a log in JSON: print it.
        "inspect": 'cat "${3%.eval}.json"',
    }.items():
        program = programs / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    ended = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", text],
        cwd=folder,
        capture_output=True,
        timeout=300,
        check=False,
        env={**ENVIRONMENT, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


def inspect_log(folder, odd=False):
    """A log as Inspect writes it in JSON: header, and samples with scores by scorer."""
    rng = np.random.default_rng(4)
    samples, known = [], []
    for k in range(30):
        sure = round(float(rng.uniform(0.2, 1)), 3)
        value = "C" if rng.random() < sure else "I"
        score = {
            "value": value, "answer": "B", "explanation": None, "history": [],
            "metadata": {"confidence": sure, "raw": ["x", {"y": None}]},
        }  # fmt: skip
        sample = {
            "id": k // 2, "epoch": 1 + k % 2, "input": "Which?", "choices": ["a", "b"],
            "target": "B", "messages": [{"role": "user", "content": "Which?\n{}"}],
            "output": {"model": "m", "choices": [{"message": {"content": "B"}}], "error": None},
            "scores": {"match": score}, "metadata": {"subject": "law"}, "store": {},
            "events": [], "attachments": {},
        }  # fmt: skip
        if odd and k % 10 == 3:
            score["value"], score["metadata"] = "N", None
        elif odd and k % 10 == 7:
            sample["scores"] = None  # the run of this sample failed
        else:
            known.append((value == "C", sure))
        samples.append(sample)
    log = {
        "version": 2, "status": "success", "eval": {"task": "quiz", "model": "m"},
        "plan": {"steps": [{"solver": "generate"}]},
        "results": {"total_samples": 30, "scores": [{"name": "match"}]},
        "stats": {}, "samples": samples, "reductions": [],
    }  # fmt: skip
    (folder / "logs").mkdir()
    (folder / "logs" / "run.json").write_text(json.dumps(log, indent=2))
    return known


def lm_eval_log(path, n=40, n_choices=4):
    """Lines as lm-evaluation-harness writes them, and what a literal loop makes of them."""
    rng = np.random.default_rng(5)
    lines, known = [], []
    for k in range(n):
        logs = np.round(rng.normal(-20, 2, n_choices), 4)
        target = int(rng.integers(n_choices)) if rng.random() < 0.4 else int(logs.argmax())
        right = float(int(logs.argmax()) == target)
        sample = {
            "doc_id": k, "doc": {"question": "Which?", "choices": ["a"] * n_choices},
            "target": str(target),
            "arguments": {
                f"gen_args_{c}": {"arg_0": "Which?", "arg_1": " a"} for c in range(n_choices)
            },
            "resps": [[[str(v), "False"]] for v in logs.tolist()],
            "filtered_resps": [[str(v), "False"] for v in logs.tolist()],
            "filter": "none", "metrics": ["acc", "acc_norm"],
            "doc_hash": "0" * 64, "prompt_hash": "1" * 64, "target_hash": "2" * 64,
            "acc": right, "acc_norm": 0.0,
        }  # fmt: skip
        lines += [sample, {**sample, "filter": "other", "acc": 1.0 - right}]
        total = sum(math.exp(v) for v in logs.tolist())
        known.append((target, [math.exp(v) / total for v in logs.tolist()], bool(right)))
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return known


def check_answers(report, known, tolerance=1e-12):
    """Accuracy, Brier score, AUC and index of a report on answers against literal loops."""
    figures = report["models"][0]["raw"]["figures"]
    n = len(known)
    right = [p for was_right, p in known if was_right]
    wrong = [p for was_right, p in known if not was_right]
    wanted = {
        "accuracy": len(right) / n,
        "brier": sum((p - was_right) ** 2 for was_right, p in known) / n,
        "auc": sum((r > w) + (r == w) / 2 for r in right for w in wrong) / len(right) / len(wrong),
        "fragility_index": bisected_index(pair_matrix(wrong, right), 0.0),
    }
    for name, value in wanted.items():
        assert figures[name]["value"] == pytest.approx(value, rel=1e-9, abs=tolerance), name


class TestInspect:
    @pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
    def test_lines_by_jq(self, tmp_path):
        known = inspect_log(tmp_path)
        code, out, err = shell(tmp_path, command("scores.match.value"))
        assert code == 0, err
        check_answers(json.loads(out), known)

    def test_lines_by_the_script(self, tmp_path):
        known = inspect_log(tmp_path, odd=True)
        code, out, err = shell(tmp_path, command("inspect_lines.py"))
        assert code == 0, err
        report = json.loads(out)
        check_answers(report, known)
        assert any("3 rows with missing values were left out" in note for note in report["notes"])
        assert report["models"][0]["answers"]["declined"] == 3

    def test_the_document_itself(self, tmp_path):
        inspect_log(tmp_path)
        asked = "fragility evaluate logs/run.json --correct scores.match.value --confidence x"
        code, out, err = shell(tmp_path, asked)
        assert (code, out) == (2, "")
        assert "jq -c '.samples[]' logs/run.json > lines.jsonl" in err

    @pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
    def test_what_is_not_said(self, tmp_path):
        inspect_log(tmp_path, odd=True)
        code, out, err = shell(tmp_path, command("scores.match.value"))
        assert (code, out) == (2, "")
        assert "'N', for no answer" in err
        assert "--declined" in err


class TestLmEval:
    @pytest.mark.parametrize("by", ["lm_eval_lines.py", "jq -c"])
    def test_answers(self, tmp_path, by):
        if by == "jq -c" and shutil.which("jq") is None:
            pytest.skip("needs jq")
        known = lm_eval_log(tmp_path / "samples_arc_easy_2025-01-31.jsonl")
        code, out, err = shell(tmp_path, command("arc_easy", by))
        assert code == 0, err
        check_answers(json.loads(out), [(right, max(p)) for _, p, right in known])

    def test_choices_as_classes(self, tmp_path):
        known = lm_eval_log(tmp_path / "samples_mmlu_anatomy_2025-01-31.jsonl")
        code, out, err = shell(tmp_path, command("mmlu_anatomy"))
        assert code == 0, err
        report = json.loads(out)
        counts = {c["label"]: c["n"] for c in report["classes"]}
        assert counts == {str(c): sum(t == c for t, _, _ in known) for c in range(4)}
        figures = report["models"][0]["raw"]["figures"]
        log_loss = -sum(math.log(p[target]) for target, p, _ in known) / len(known)
        assert figures["log_loss"]["value"] == pytest.approx(log_loss, rel=1e-9)
        brier = sum((p[c] - (c == t)) ** 2 for t, p, _ in known for c in range(4)) / len(known)
        assert figures["brier"]["value"] == pytest.approx(brier, rel=1e-9)
