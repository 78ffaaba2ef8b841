"""Small faults put into the library one at a time: which test notices each?

    python -m tests.mutants --seed 0 --count 40

draws faults from the syntax trees of `index/`, `solvers/`, `scores/` and `deferral/`, or of the
folders that ``--packages`` names, as many from each, puts one after the other into a copy of the
tree and runs the tests there until one fails:
first the fast tier in files that name the changed module or what it defines, then these files in
full, then the fast tier, then everything; ``--depth`` says after how many of these four to give up.
With ``--coverage .coverage`` first come the tests that run the changed line, then their files:

    coverage run --source=src/fragility -m pytest -p tests.fast -p tests.contexts

What is known already stands in a journal (JSON lines), and is not run again. ``--tests-from REF``
asks of every survivor whether the tests of another commit notice it.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fragility"
PACKAGES = ("index", "solvers", "scores", "deferral")

#: Why a run was ended.
NO_END = "no end after"

#: Parts of the tree that tests read.
TREE = ("src", "tests", "experiments", "examples", "benchmarks", "docs")

#: What people read, and what no test can tell apart.
UNREAD_FUNCTIONS = {"__repr__", "__str__", "_repr_html_", "__dir__", "__hash__"}
UNREAD_KEYWORDS = {
    "check_finite", "copy", "frozen", "kw_only", "order", "overwrite_a", "overwrite_b", "repr",
    "slots", "stacklevel", "strict", "category", "dtype",
}  # fmt: skip

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
EXTREMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "amin": "amax",
    "amax": "amin",
}


@dataclass(frozen=True)
class Mutant:
    """One expression of one file, and what stands there instead."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.before} -> {self.after}"

    def applied(self, source: str) -> str:
        """The file with this change; columns are in bytes, as in syntax trees."""
        lines = source.encode().splitlines(keepends=True)
        start = lines[self.line - 1][: self.column]
        end = lines[self.end_line - 1][self.end_column :]
        lines[self.line - 1 : self.end_line] = [start + self.after.encode() + end]
        return b"".join(lines).decode()


class Collector(ast.NodeVisitor):
    """Every change that could be made to one file."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.found: list[Mutant] = []
        self.visit(ast.parse(source))

    def _add(self, kind: str, node: ast.expr, changed: ast.expr) -> None:
        before = ast.get_source_segment(self.source, node)
        after = ast.unparse(ast.fix_missing_locations(changed))
        if isinstance(changed, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            after = f"({after})"
        assert before is not None
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        self.found.append(
            Mutant(
                self.path,
                node.lineno,
                node.col_offset,
                node.end_lineno,
                node.end_col_offset,
                kind,
                before,
                after,
            )
        )

    # What is left out.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in UNREAD_FUNCTIONS:
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                self.visit(default)
            for statement in node.body:
                self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages are for people; that it is raised at all depends on conditions outside."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text."""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in UNREAD_KEYWORDS:
            self.visit(node.value)

    # What is changed.

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                changed = copy.deepcopy(node)
                changed.ops[place] = other()
                self._add("comparison", node, changed)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = ARITHMETIC.get(type(node.op))
        text = any(_is_text(side) for side in (node.left, node.right))
        union = isinstance(node.op, ast.BitOr) and any(
            _is_type(side) for side in (node.left, node.right)
        )
        if other is not None and not text and not union:
            changed = copy.deepcopy(node)
            changed.op = other()
            self._add("arithmetic", node, changed)
        if not text:
            self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if not isinstance(node.op, ast.UAdd):
            self._add("sign", node, copy.deepcopy(node.operand))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = copy.deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add("and or", node, changed)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool(value):
                self._add("constant", node, ast.Constant(not value))
            case int(value):
                self._add("constant", node, ast.Constant(value + 1))
            case float(value):
                self._add("constant", node, ast.Constant(2 * value if value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in {"warn", "cast", "TypeVar", "NewType"}:
            return
        if name in EXTREMES:
            changed = copy.deepcopy(called)
            if isinstance(changed, ast.Attribute):
                changed.attr = EXTREMES[name]
            elif isinstance(changed, ast.Name):
                changed.id = EXTREMES[name]
            self._add("extreme", called, changed)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare):  # a comparison has its own opposite
            self._add("condition", test, ast.UnaryOp(ast.Not(), copy.deepcopy(test)))

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not _is_text(node.value):
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                self._add("return", node.value, ast.Constant(None))
            self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                changed = ast.BinOp(copy.deepcopy(bound), ast.Add(), ast.Constant(1))
                self._add("slice", bound, changed)
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_type(node: ast.expr) -> bool:
    """Whether it is the None or the type in ``int | None``."""
    return isinstance(node, ast.Constant) and node.value is None


def drawn(seed: int, count: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """As many mutants from each package, and within a package of each kind."""
    rng = random.Random(seed)
    chosen: list[Mutant] = []
    for place, package in enumerate(packages):
        by_kind: dict[str, list[Mutant]] = {}
        for path in sorted((SOURCE / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for mutant in Collector(name, path.read_text(encoding="utf-8")).found:
                by_kind.setdefault(mutant.kind, []).append(mutant)
        wanted = count // len(packages) + (place < count % len(packages))
        kinds: list[str] = []
        while wanted > 0 and any(by_kind.values()):
            if not kinds:
                kinds = rng.sample(sorted(by_kind), len(by_kind))
            found = by_kind[kinds.pop()]
            if found:
                chosen.append(found.pop(rng.randrange(len(found))))
                wanted -= 1
    return chosen


# Which tests, in which order.


def naming(mutant: Mutant) -> list[str]:
    """Test files that name the module or something that it defines, most often first."""
    path = ROOT / mutant.path
    body = ast.parse(path.read_text(encoding="utf-8")).body
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    words = [re.escape(name) for name in defined if not name.startswith("_")]
    package = re.escape(path.parent.name)
    words.append(rf"{package}(?:\.| import (?:\w+, )*){re.escape(path.stem)}")
    pattern = re.compile(rf"\b(?:{'|'.join(words)})\b")
    mentions = {
        file.relative_to(ROOT).as_posix(): len(pattern.findall(file.read_text(encoding="utf-8")))
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    return sorted((file for file, n in mentions.items() if n), key=lambda file: -mentions[file])


def running(mutant: Mutant, coverage_file: Path) -> list[str]:
    """Tests that run one of the changed lines, those in files with few of them first."""
    from coverage import CoverageData  # type: ignore[import-not-found, unused-ignore]

    data = CoverageData(str(coverage_file))
    data.read()
    (measured,) = (name for name in data.measured_files() if name.endswith(mutant.path))
    found: set[str] = set()
    contexts = data.contexts_by_lineno(measured)
    for line in range(mutant.line, mutant.end_line + 1):
        found |= {context.split("|")[0] for context in contexts.get(line, ()) if context}
    by_file: dict[str, list[str]] = {}
    for test in sorted(found):
        by_file.setdefault(test.split("::")[0], []).append(test)
    return [test for tests in sorted(by_file.values(), key=len) for test in tests]


def stages(mutant: Mutant, coverage_file: Path | None, depth: int) -> Iterator[list[str]]:
    """Arguments of pytest for one run after the other, until a test fails."""
    tests = [] if coverage_file is None else running(mutant, coverage_file)
    files = list(dict.fromkeys([*(test.split("::")[0] for test in tests), *naming(mutant)]))
    if tests:
        yield tests
    elif files:
        yield ["-p", "tests.fast", *files]
    if files and depth > 1:
        yield files
    if depth > 2:
        yield ["-p", "tests.fast"]
    if depth > 3:
        yield []


# Running them.


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: killed by a test, by a limit of time, or alive."""

    mutant: str
    kind: str
    killed: bool
    by: str
    seconds: float
    depth: int
    tests_from: str = ""


def copy_tree(target: Path) -> Path:
    """What tests read, as it is in the working tree."""
    ignored = shutil.ignore_patterns("__pycache__", "results-quick")
    for name in TREE:
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy2(file, target / file.name)
    return target


def run_tests(tree: Path, arguments: list[str], limit: float) -> tuple[bool, str]:
    """Whether a test fails in this tree, and which."""
    listed = tree / "arguments.txt"
    listed.write_text("\n".join(arguments), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, f"@{listed}"],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True, f"{NO_END} {limit:.0f} s"
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out, re.MULTILINE)
    if failed:
        return True, failed[0]
    if process.returncode in (0, 5):  # 5: the tier has no test in these files
        return False, ""
    return True, out.strip().splitlines()[-1] if out.strip() else f"exit {process.returncode}"


def judged(mutant: Mutant, tree: Path, args: argparse.Namespace) -> Fate:
    """Put the mutant into the tree, run the tests, and take it out again."""
    file = tree / mutant.path
    source = file.read_text(encoding="utf-8")
    began = time.monotonic()
    killed, by = False, ""
    innocent: list[str] = []  # tests that fail anyway
    try:
        _write(file, mutant.applied(source))
        for stage, arguments in enumerate(stages(mutant, args.coverage, args.depth)):
            killed = True
            while killed:
                left = args.limit - (time.monotonic() - began)
                killed, by = run_tests(tree, [*arguments, *innocent], max(left, 60))
                if not killed or "::" not in by or not _fails_without(by, tree, mutant, source):
                    break
                innocent += ["--deselect", by]
            if killed and stage > 0 and by.startswith(NO_END):
                killed = False  # many tests: it is not the mutant that takes so long
                break
            if killed:
                break
    finally:
        _write(file, source)
    seconds = round(time.monotonic() - began, 1)
    return Fate(mutant.name, mutant.kind, killed, by, seconds, args.depth, args.tests_from)


def _fails_without(test: str, tree: Path, mutant: Mutant, source: str) -> bool:
    """Whether the test fails without the mutant, too."""
    file = tree / mutant.path
    _write(file, source)
    fails, _ = run_tests(tree, [test], 600)
    _write(file, mutant.applied(source))
    return fails


def _write(file: Path, source: str) -> None:
    """Without the compiled file: within a second and of equal length, it would be believed."""
    file.write_text(source, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def take_tests(tree: Path, ref: str) -> None:
    """Replace the tests of this tree by the tests of another commit."""
    shutil.rmtree(tree / "tests")
    archive = subprocess.run(
        ["git", "archive", ref, "tests"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "x"], cwd=tree, input=archive, check=True)


def table(fates: list[Fate]) -> str:
    lines = ["| mutant | kind | killed by | s |", "|---|---|---|---|"]
    for fate in fates:
        mutant = " ".join(fate.mutant.removeprefix("src/fragility/").split()).replace("|", "\\|")
        killer = f"`{fate.by}`" if fate.killed else f"**survives** {fate.by}".strip()
        lines.append(f"| `{mutant}` | {fate.kind} | {killer} | {fate.seconds} |")
    killed = sum(fate.killed for fate in fates)
    return "\n".join([*lines, "", f"{killed} of {len(fates)} killed."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument(
        "--packages",
        nargs="+",
        default=PACKAGES,
        choices=sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")),
        metavar="NAME",
        help="folders of src/fragility that faults are drawn from",
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time, each in its tree")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one mutant")
    parser.add_argument("--depth", type=int, default=4, help="how many of the four sets of tests")
    parser.add_argument("--coverage", type=Path, help="data of coverage, with contexts")
    parser.add_argument("--tests-from", default="", help="only survivors, with tests of this ref")
    parser.add_argument("--journal", type=Path, default=ROOT / "mutants.jsonl")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    args = parser.parse_args()
    mutants = drawn(args.seed, args.count, args.packages)
    if args.list:
        print("\n".join(f"{mutant.kind:12}{mutant.name}" for mutant in mutants))
        return
    known: dict[tuple[str, str], Fate] = {}
    if args.journal.exists():
        for line in args.journal.read_text(encoding="utf-8").splitlines():
            fate = Fate(**json.loads(line))
            known[fate.mutant, fate.tests_from] = fate
    asked = mutants
    if args.tests_from:
        asked = [m for m in mutants if (m.name, "") in known and not known[m.name, ""].killed]
    todo = [
        mutant
        for mutant in asked
        if (fate := known.get((mutant.name, args.tests_from))) is None
        or (not fate.killed and fate.depth < args.depth)
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for job in range(args.jobs if todo else 0):
            tree = copy_tree(Path(folder) / str(job))
            if args.tests_from:
                take_tests(tree, args.tests_from)
            trees.put(tree)

        def judge(mutant: Mutant) -> Fate:
            tree = trees.get()
            try:
                return judged(mutant, tree, args)
            finally:
                trees.put(tree)

        for fate in pool.map(judge, todo):
            known[fate.mutant, fate.tests_from] = fate
            with args.journal.open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(asdict(fate), ensure_ascii=False) + "\n")
            print(f"{'killed' if fate.killed else 'ALIVE':8}{fate.mutant}  {fate.by}", flush=True)
    print("\n" + table([known[mutant.name, args.tests_from] for mutant in asked]))


if __name__ == "__main__":
    main()
