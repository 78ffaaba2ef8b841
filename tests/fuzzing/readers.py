"""Tables that are damaged: the command refuses them in one line, or reads what is there.

What it makes of text is compared with what Python's own csv and json modules read.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from zlib import crc32

import numpy as np

LABEL, SCORE = "y", "p"
_TOKENS = (
    *(b'"', b'""', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\n\n", b"\0", b" "),
    *(b"\xef\xbb\xbf", b"\xff", b"\xe9", b"\xed\xa0\x80", b"\x1b[31m", b"\\", b"=", b"#", b"-"),
    *(b"nan", b"NA", b"inf", b"-inf", b"1e400", b"1e-400", b"-0.0", b"1.0", b"2", b"0x1", b"1_0"),
    *(b"true", b"False", b"9" * 30, b"0.5", b"0,5", b"1.0000001", b"PAR1", b"ARROW1", b"\x1f\x8b"),
    *(b"x" * 3000, b"y,p\n", b"1,0.5\n", b"y", b"p"),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b'{"y": 1, "p": 0.5}\n',
        b'"p": ',
        b"null",
        b"NaN",
        b"Infinity",
    ),
    *(b"\\ud800", b"[" * 3000, b'{"p":' * 3000, b"[0.5]", b'{"p": 1}', b'"0.5"', b"\xe2\x80\xa8"),
)
_NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 2**15, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_MISSING = {"", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "NaN"} | {
    *("nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
}


def corpus() -> list[bytes]:
    """Small tables as files of every kind, with classes of several kinds."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    n = 40
    is_high = rng.random(n) < 0.5
    # So weak that the file is taken whichever class is positive.
    p = np.round(0.1 * is_high + 0.9 * rng.random(n), 3)
    labels = pa.array(np.where(is_high, "high", "low"))
    ordered = pa.DictionaryArray.from_arrays(is_high.astype(np.int8), ["low", "high"], ordered=True)
    numbers = pa.table({LABEL: is_high.astype(int), SCORE: p})
    words = pa.table({"id": [f"case {k}" for k in range(n)], LABEL: labels, SCORE: p})
    categories = pa.table(
        {LABEL: ordered, SCORE: p.astype(np.float32), "note": ['a "b"', None] * 20}
    )
    made = []
    for table in (numbers, words, categories):
        text = io.BytesIO()
        pa.csv.write_csv(table, text)
        plain = text.getvalue().replace(b'"y","p"', b"y,p")
        made += [plain, gzip.compress(plain, mtime=0), plain.replace(b",", b";")]
        for options in ({}, {"compression": "none", "use_dictionary": [LABEL]}, {"version": "1.0"}):
            stored = io.BytesIO()
            pa.parquet.write_table(table, stored, row_group_size=16, **options)
            made.append(stored.getvalue())
        for new in (pa.ipc.new_file, pa.ipc.new_stream):
            stored = io.BytesIO()
            with new(stored, table.schema) as writer:
                writer.write_table(table, max_chunksize=16)
            made.append(stored.getvalue())
        rows = table.to_pylist()
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        made += [text, gzip.compress(text, mtime=0), json.dumps(rows, indent=1).encode()]
    return made


def mutations(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """One to four changes each: bits, bytes, numbers, words, and parts cut, doubled or moved."""
    if data.startswith(b"\x1f\x8b"):  # what is in a gzip is worth changing, too
        inner = mutations(gzip.decompress(data), rng)
        while True:
            yield _changed(data, rng)
            yield gzip.compress(next(inner), mtime=0)
    while True:
        made = data
        for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
            made = _changed(made, rng)
        yield made


def _changed(data: bytes, rng: np.random.Generator) -> bytes:
    if not data:
        return b"y"
    place = int(rng.integers(len(data)))
    end = min(len(data), place + int(rng.choice([1, 2, 4, 8, 30, 200])))
    other = int(rng.integers(len(data)))
    kind = int(rng.integers(9))
    if kind == 0:
        return data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :]
    if kind == 1:
        return data[:place] + rng.bytes(end - place) + data[end:]
    if kind == 2:
        size = int(rng.choice([1, 2, 4, 8]))
        number = int(rng.choice(np.array(_NUMBERS, dtype=object))) % 256**size
        return data[:place] + number.to_bytes(size, "little") + data[place + size :]
    if kind == 3:
        return data[:place]
    if kind == 4:
        return data[:place] + data[end:]
    if kind == 5:  # a part twice
        return data[:other] + data[place:end] + data[other:]
    if kind == 6:  # a part over another
        return data[:other] + data[place:end] + data[other + end - place :]
    if kind == 7:
        token = _TOKENS[int(rng.integers(len(_TOKENS)))]
        return data[:place] + token + data[place:]
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def check(content: bytes | Path) -> bool:
    """Whether the command accepts a file; an AssertionError where it does what it must not.

    It may end with 0 or 2, and with one line of standard error for 2; a text that it accepts has
    the cases, classes and figures that Python's csv or json module finds.
    """
    if isinstance(content, bytes):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table{_ending(content)}"
            path.write_bytes(content)
            return check(path)
    data = content.read_bytes()
    way = [["--in-memory"], ["--hold", "0"]][crc32(data) % 2]
    if crc32(data) % 3 == 0:  # the same table as answers that are right or wrong
        _accepted("--correct", LABEL, "--confidence", SCORE, "--no-calibration", *way, file=content)
    out = _accepted("--label", LABEL, "--score", SCORE, *way, file=content)
    if out is None:
        return False
    figures = json.loads(out)
    if not data.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        _compare(figures, gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    return True


def _accepted(*options: str, file: Path) -> str | None:
    """What the command prints as JSON; None if it refuses the file, which it does in one line."""
    code, out, err = run("evaluate", file, *options, "--json")
    assert code in (0, 2), f"exit {code}: {err}"
    assert "Traceback" not in err, err
    assert "\udc80" not in err, err
    if code == 0:
        return out
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("Error: "), err
    assert out == "", out
    return None


def run(*arguments: object) -> tuple[int, str, str]:
    """The command in this process: how it ends, and what it writes."""
    from fragility.cli.app import run as command

    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        code = command([os.fspath(a) if isinstance(a, Path) else str(a) for a in arguments])
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return code, out, err


def _ending(content: bytes) -> str:
    endings = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrows"}
    return next((e for start, e in endings.items() if content.startswith(start)), ".csv")


def _compare(figures: dict, data: bytes) -> None:
    """The same cases, classes, and proper scores as the slow reading finds."""
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        readings = [_read_json(data)]
    else:
        readings = [_read(data, delimiter) for delimiter in ",;\t|"]
    possible = [reading for reading in readings if reading is not None]
    assert possible, "accepted, but no reading of the text has these columns and numbers"
    found = {c["label"]: c["n"] for c in figures["classes"]}
    brier = figures["models"][0]["raw"]["figures"]["brier"]["value"]
    seen = []
    for labels, scores in possible:
        happened = [label == figures["positive"] for label in labels]
        wanted = math.fsum((s - h) ** 2 for s, h in zip(scores, happened, strict=True))
        seen.append((dict(Counter(labels)), wanted / len(labels)))
    assert any(
        counts == found and math.isclose(brier, wanted, rel_tol=1e-9, abs_tol=1e-12)
        for counts, wanted in seen
    ), (found, brier, seen)


def _read(data: bytes, delimiter: str) -> tuple[list[str], list[float]] | None:
    """Labels and scores of every row, or None if there are none to be read this way."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")  # in other columns
    rows = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if r]
    while rows and not any(field.strip() for field in rows[0]):
        rows.pop(0)
    names = [name.strip() for name in rows[0]] if rows else []
    if names.count(LABEL) != 1 or names.count(SCORE) != 1 or len({len(r) for r in rows}) > 1:
        return None
    label, score = names.index(LABEL), names.index(SCORE)
    return _cells([(row[label], row[score]) for row in rows[1:]])


def _read_json(data: bytes) -> tuple[list[str], list[float]] | None:
    """The same of JSON: one object a line, or a list of objects."""
    text = data.decode().removeprefix("\ufeff")
    try:
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except ValueError:
        rows = json.loads(text)
    if len(rows) == 1 and isinstance(rows[0], list):
        rows = rows[0]
    return _cells([(_as_text(row[LABEL]), _as_text(row[SCORE])) for row in rows])


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    assert value is None or isinstance(value, bool | int | float), value
    return "" if value is None else str(value).lower()


def _cells(rows: list[tuple[str, str]]) -> tuple[list[str], list[float]] | None:
    """Labels and scores of rows that have both."""
    try:
        scores = [float(score) for _, score in rows]
    except ValueError:
        return None
    labels = [label for label, _ in rows]
    if any(value.strip() in _MISSING for value in labels) or any(map(math.isnan, scores)):
        return None
    wholes = [_whole(value) for value in labels]
    return [str(w) for w in wholes] if None not in wholes else labels, scores


def _whole(value: str) -> int | None:
    text = value.strip().lower()
    if text in ("true", "false"):
        return int(text == "true")
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII):
        return None
    number = Decimal(text)
    return int(number) if number.adjusted() <= 40 and number == int(number) else None
