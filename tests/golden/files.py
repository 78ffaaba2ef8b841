"""Files that are broken or strange, and what the command says of them."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .ask import evaluate_file

ROWS = 40

#: Name of the file, its content, and which of its columns are what.
File = tuple[str, bytes, dict[str, Any]]


def columns() -> dict[str, list[Any]]:
    """Return a table of forty patients with two models."""
    rng = np.random.default_rng(5)
    logit = 1.5 * rng.standard_normal(ROWS)
    sick = rng.random(ROWS) < 1 / (1 + np.exp(-logit))
    sick[:2] = False, True
    noisy = logit + rng.standard_normal(ROWS)
    return {
        "id": [f"p{row}" for row in range(ROWS)],
        "sick": np.where(sick, "yes", "no").tolist(),
        "old": np.round(1 / (1 + np.exp(-noisy)), 6).tolist(),
        "new": np.round(1 / (1 + np.exp(-logit)), 6).tolist(),
        "weight": rng.integers(1, 4, ROWS).tolist(),
        "site": rng.choice(["north", "south"], ROWS).tolist(),
        "patient": rng.integers(0, 15, ROWS).tolist(),
    }


def csv(table: dict[str, list[Any]], separator: str = ",", end: str = "\n") -> bytes:
    """Return the table as text without quotes."""
    lines = [separator.join(table)]
    lines += [separator.join(map(str, row)) for row in zip(*table.values(), strict=True)]
    return (end.join(lines) + end).encode()


def rows_of(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return one mapping for each row."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    """Return a JSON object for each row, one on each line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def arrow(table: dict[str, Any], kind: str) -> bytes:
    """Return the table as Parquet or as an Arrow file."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    stream, content = io.BytesIO(), pa.table(table)
    if kind == "parquet":
        parquet.write_table(content, stream)
    else:
        with pa.ipc.new_file(stream, content.schema) as writer:
            writer.write_table(content)
    return stream.getvalue()


def with_cell(column: str, row: int, value: Any) -> dict[str, list[Any]]:
    """Return the table with another value in one place."""
    table = columns()
    table[column][row] = value
    return table


def with_column(**changed: list[Any]) -> dict[str, list[Any]]:
    """Return the table with other columns."""
    return {**columns(), **changed}


TWO = {"label": "sick", "score": ("old", "new")}
ALL = {**TWO, "weight": "weight", "group": ("site",), "cluster": "patient"}
OUTCOMES = {"correct": ("ok",), "confidence": ("sure",)}


def broken_values() -> Iterator[File]:
    """One cell or one column is wrong."""
    yield "score_above_one.csv", csv(with_cell("new", 7, 1.2)), TWO
    yield "score_negative.csv", csv(with_cell("new", 7, -0.2)), TWO
    yield "score_infinite.csv", csv(with_cell("new", 7, "inf")), TWO
    yield "score_empty.csv", csv(with_cell("new", 7, "")), TWO
    yield "score_empty_dropped.csv", csv(with_cell("new", 7, "")), {**TWO, "drop_missing": True}
    yield "score_word.csv", csv(with_cell("new", 7, "high")), TWO
    yield "score_comma.csv", csv(with_column(new=["0,5"] * ROWS), ";"), TWO
    percent = [100 * score for score in columns()["new"]]
    yield "score_percent.csv", csv(with_column(new=percent)), TWO
    logits = np.linspace(-4, 4, ROWS).tolist()
    yield "score_logits.csv", csv(with_column(new=logits)), TWO
    yield "score_text_column.csv", csv(columns()), {**TWO, "score": ("site",)}
    hard = [float(score > 0.5) for score in columns()["new"]]
    yield "score_hard_classes.csv", csv(with_column(new=hard)), TWO
    constant = with_column(new=[0.5] * ROWS)
    yield "score_constant.csv", csv(constant), TWO
    yield "label_empty.csv", csv(with_cell("sick", 3, "")), TWO
    yield "label_na.csv", csv(with_cell("sick", 3, "NA")), TWO
    yield "label_third.csv", csv(with_cell("sick", 3, "maybe")), TWO
    yield "label_one_class.csv", csv(with_column(sick=["no"] * ROWS)), TWO
    yield "label_measurements.csv", csv(with_column(sick=columns()["new"])), TWO
    yield "label_identifiers.csv", csv(with_column(sick=columns()["id"])), TWO
    capitals = [word.title() if row % 3 else word for row, word in enumerate(columns()["sick"])]
    yield "label_capitals.csv", csv(with_column(sick=capitals)), TWO
    spaces = [f" {word} " for word in columns()["sick"]]
    yield "label_spaces.csv", csv(with_column(sick=spaces)), TWO
    swapped = [round(1 - score, 6) for score in columns()["new"]]
    yield "score_reversed.csv", csv(with_column(new=swapped)), TWO
    yield "weight_negative.csv", csv(with_cell("weight", 4, -1)), ALL
    yield "weight_zero.csv", csv(with_column(weight=[0] * ROWS)), ALL
    yield "weight_empty.csv", csv(with_cell("weight", 4, "")), ALL
    yield "group_empty.csv", csv(with_cell("site", 4, "")), ALL
    yield "cluster_empty.csv", csv(with_cell("patient", 4, "")), ALL


def broken_files() -> Iterator[File]:
    """The file itself is damaged, or not the one that was meant."""
    whole = csv(columns())
    lines = whole.decode().splitlines()
    yield "empty.csv", b"", TWO
    yield "header_only.csv", lines[0].encode() + b"\n", TWO
    yield "no_header.csv", "\n".join(lines[1:]).encode(), TWO
    yield "short_row.csv", "\n".join([*lines[:20], "only,two", *lines[21:]]).encode(), TWO
    yield "long_row.csv", "\n".join([*lines[:20], lines[20] + ",7,8", *lines[21:]]).encode(), TWO
    yield "open_quote.csv", "\n".join([*lines[:9], '"' + lines[9], *lines[10:]]).encode(), TWO
    yield "two_names.csv", whole.replace(b",new,", b",old,", 1), TWO
    yield "random_bytes.csv", np.random.default_rng(0).bytes(3000), TWO
    yield "latin.csv", whole.decode().replace("north", "nördlich").encode("latin-1"), ALL
    yield "utf16.csv", whole.decode().encode("utf-16"), TWO
    yield "null_byte.csv", whole.replace(b"p7,", b"p\x007,"), TWO
    yield "cut_off.csv.gz", gzip.compress(whole, mtime=0)[:300], TWO
    yield "not_gzip.csv.gz", whole, TWO
    parquet = arrow(columns(), "parquet")
    yield "cut_off.parquet", parquet[: len(parquet) // 2], TWO
    yield "random_bytes.parquet", b"PAR1" + np.random.default_rng(0).bytes(3000), TWO
    stored = arrow(columns(), "arrow")
    yield "cut_off.arrow", stored[: len(stored) // 2], TWO
    yield "sheet.xlsx", b"PK\x03\x04" + bytes(100), TWO
    rows = rows_of(columns())
    text = json_lines(rows).decode().splitlines()
    yield "cut_off.jsonl", "\n".join([*text[:9], text[9][:20]]).encode(), TWO
    yield "comma.jsonl", "\n".join(line + "," for line in text).encode(), TWO
    yield "one_line.jsonl", " ".join(text).encode(), TWO
    yield "scalar.jsonl", "\n".join([*text[:5], "7", *text[5:]]).encode(), TWO
    yield "missing_key.jsonl", json_lines([*rows[:5], {"id": "x"}, *rows[6:]]), TWO
    yield "object.json", json.dumps({"rows": rows}).encode(), TWO
    yield "wrong_label.csv", whole, {**TWO, "label": "sik"}
    yield "wrong_score.csv", whole, {**TWO, "score": ("od",)}
    yield "wrong_positive.csv", whole, {**TWO, "positive": "maybe"}


def several_classes() -> Iterator[File]:
    """Three classes with one column of probabilities for each."""
    p = np.random.default_rng(6).dirichlet([1.0, 1.0, 1.0], ROWS)
    p = np.round(p, 6)
    p[:, 2] = np.round(1 - p[:, 0] - p[:, 1], 6)
    animal = np.array(["cat", "dog", "owl"])[p.argmax(axis=1)]
    animal[:3] = "owl", "cat", "dog"
    table: dict[str, Any] = {"animal": animal.tolist()}
    table |= {name: p[:, place].tolist() for place, name in enumerate("abc")}
    named = {"label": "animal", "score": ("m=a,b,c",), "classes": "cat,dog,owl"}
    yield "three_classes.csv", csv(table), named
    yield "three_unnamed.csv", csv(table), {"label": "animal", "score": ("m=a,b,c",)}
    yield "three_one_column.csv", csv(table), {"label": "animal", "score": ("a",)}
    yield "three_two_columns.csv", csv(table), {**named, "score": ("m=a,b",)}
    yield "three_other_names.csv", csv(table), {**named, "classes": "cat,dog,emu"}
    table["c"] = [0.0] * ROWS
    yield "three_sums.csv", csv(table), named


def outcome_files() -> Iterator[File]:
    """Answers that are right or wrong."""
    rng = np.random.default_rng(7)
    sure = np.round(rng.random(ROWS), 6)
    right = rng.random(ROWS) < sure
    words = np.where(right, "C", "I").tolist()
    table: dict[str, Any] = {"ok": words, "sure": sure.tolist(), "silent": [0] * ROWS}
    yield "outcomes.csv", csv(table), OUTCOMES
    yield "outcomes_word.csv", csv({**table, "ok": ["perhaps", *words[1:]]}), OUTCOMES
    yield "outcomes_empty.csv", csv({**table, "ok": ["", *words[1:]]}), OUTCOMES
    declined = {**table, "ok": ["", *words[1:]], "silent": [1, *[0] * (ROWS - 1)]}
    yield "outcomes_declined.csv", csv(declined), {**OUTCOMES, "declined": ("silent",)}
    yield "outcomes_percent.csv", csv({**table, "sure": (100 * sure).tolist()}), OUTCOMES
    nested = [
        {"score": {"value": word}, "metadata": {"sure": float(p)}}
        for word, p in zip(words, sure, strict=True)
    ]
    asked = {"correct": ("score.value",), "confidence": ("metadata.sure",)}
    yield "outcomes.jsonl", json_lines(nested), asked


def strange_files() -> Iterator[File]:
    """Unusual, but readable."""
    table = columns()
    whole = csv(table)
    yield "plain.csv", whole, ALL
    yield "byte_order_mark.csv", b"\xef\xbb\xbf" + whole, ALL
    yield "semicolons.csv", csv(table, ";"), ALL
    yield "tabs.tsv", csv(table, "\t"), ALL
    yield "windows_ends.csv", csv(table, end="\r\n"), ALL
    yield "blank_lines.csv", whole.replace(b"\np9,", b"\n\np9,"), ALL
    yield "packed.csv.gz", gzip.compress(whole, mtime=0), ALL
    yield "rows.jsonl", json_lines(rows_of(table)), ALL
    yield "list.json", json.dumps(rows_of(table), indent=1).encode(), ALL
    yield "columns.parquet", arrow(table, "parquet"), ALL
    yield "columns.arrow", arrow(table, "arrow"), ALL
    yield "numbers_as_labels.csv", csv({**table, "sick": [1, 0] * (ROWS // 2)}), TWO
    yield "truth_values.csv", csv({**table, "sick": ["True", "false"] * (ROWS // 2)}), TWO
    odd = {f" {name} " if name == "old" else name: entries for name, entries in table.items()}
    yield "spaces_in_header.csv", csv(odd), TWO


def files() -> Iterator[File]:
    """Yield every file of the bank."""
    for kind in (broken_values, broken_files, several_classes, outcome_files, strange_files):
        yield from kind()


def answer_of_file(folder: Path, file: File) -> dict[str, Any]:
    """Return the exit code with the error, or with what was read and the verdict."""
    name, content, asked = file
    (folder / name).write_bytes(content)
    ended = evaluate_file(folder / name, **asked)
    if ended.code == 0:
        return {"code": 0, "report": summary(json.loads(ended.out))}
    return {"code": ended.code, "error": ended.err.strip()}


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says about the cases that it read, and the verdict."""
    read = {name: report.get(name) for name in ("n_samples", "classes", "positive", "notes")}
    figures = {model["name"]: model["raw"]["figures"] for model in report["models"]}
    verdict = report["verdict"]["model"], report["verdict"]["sentences"]
    return {**read, "verdict": list(verdict), "figures": figures}


def answers_of_files() -> dict[str, Any]:
    """Return what the command says of every file."""
    with tempfile.TemporaryDirectory() as folder:
        return {file[0]: answer_of_file(Path(folder), file) for file in files()}
