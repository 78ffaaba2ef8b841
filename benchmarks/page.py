"""Size of the page of a large file, and how fast it follows a hand, measured in Chromium.

Run ``python benchmarks/page.py``: the command makes the page of four models on ten million rows (a
file that is made for the purpose and deleted afterwards); then a slider is moved and costs
are changed, a hundred times each, also on a processor slowed down four times. Needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from large_file import write_file

RESULTS = Path(__file__).parent / "results" / "page.md"
MODELS = "abcd"
SLOWER = (1, 4)
#: Bytes of the page; median milliseconds, also on a processor that is so many times slower.
MOST_BYTES, LIMITS = 160_000, {1: 16.0, 4: 50.0}

#: From the event to the end of layout; the wait for a frame in between leaves nothing over.
STEPS = """async ([id, values]) => {
  const input = document.getElementById(id), times = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (const value of values) {
    await frame();
    const start = performance.now();
    input.value = String(value);
    input.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times;
}"""


def report_page(source: Path, output: Path) -> None:
    command = [sys.executable, "-m", "fragility", "report", str(source)]
    scores = [argument for name in MODELS for argument in ("--score", name)]
    command += ["--label", "y", *scores, "--error-cost", "10", "--output", str(output)]
    subprocess.run(command, check=True, capture_output=True)


def step_times(path: Path) -> dict[tuple[str, int], list[float]]:
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"file://{path}")
        session = page.context.new_cdp_session(page)
        last = int(page.get_attribute("#upper", "max") or 0)
        moves = {
            "a threshold": ("upper", [last * k // 100 for k in range(100)]),
            "the cost of a miss": ("miss", [5 + k / 10 for k in range(100)]),
            "the capacity": ("cap", [k / 4 for k in range(100)]),
        }
        for slower in SLOWER:
            session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
            for name, (field, values) in moves.items():
                found[name, slower] = page.evaluate(STEPS, [field, values])
        chromium.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "scores.parquet", Path(folder) / "page.html"
        write_file(source, rows, MODELS)
        report_page(source, output)
        size, times = output.stat().st_size, step_times(output)
    lines = [
        "| what moves | processor | median ms | limit | slowest of 100 ms |",
        "|---|---|---:|---:|---:|",
    ]
    for (name, slower), taken in times.items():
        speed = "as it is" if slower == 1 else f"{slower} times slower"
        figures = f"{median(taken):.1f} | {LIMITS[slower]:.0f} | {max(taken):.1f}"
        lines.append(f"| {name} | {speed} | {figures} |")
    text = "\n\n".join(
        [
            "# The page of a large file",
            f"`python benchmarks/page.py`: {len(MODELS)} models, {rows:,} rows. The page has "
            f"**{size / 1000:.0f} kB** (limit {MOST_BYTES / 1000:.0f}). From the event to the "
            "end of layout, in Chromium without a window, 1280 × 900:",
            "\n".join(lines),
        ]
    )
    print(text)
    if rows == parser.get_default("rows"):
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
