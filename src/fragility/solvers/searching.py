"""Searches that ask for interior-point programs, and how many of them go on side by side.

A search is a generator: it yields programs and is sent their solutions, as often as it needs, and
returns what it was for. So a search reads as if it were alone, and any number of searches (folds,
penalties, targets) have their programs solved together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeVar

from .interior_point import solve_together
from .interior_program import InteriorProgram, InteriorSolution

T = TypeVar("T")
Search = Generator[list[InteriorProgram], list[InteriorSolution], T]


def solution_of(program: InteriorProgram) -> Search[InteriorSolution]:
    """Ask for the solution of one program."""
    (found,) = yield [program]
    return found


def side_by_side(searches: Iterable[Search[T]]) -> Search[list[T]]:
    """Several searches as one: what they ask for is asked for together."""
    every, found = list(searches), {}
    asked: dict[int, list[InteriorProgram]] = {}

    def go_on(place: int, answer: list[InteriorSolution] | None) -> None:
        try:
            asked[place] = next(every[place]) if answer is None else every[place].send(answer)
        except StopIteration as end:
            found[place] = end.value

    for place in range(len(every)):
        go_on(place, None)
    while asked:
        sizes = {place: len(programs) for place, programs in asked.items()}
        answers = iter((yield [one for programs in asked.values() for one in programs]))
        asked = {}
        for place, size in sizes.items():
            go_on(place, [next(answers) for _ in range(size)])
    return [found[place] for place in range(len(every))]


def result(search: Search[T]) -> T:
    """What a search returns: all that it asks for is solved."""
    try:
        asked = next(search)
        while True:
            asked = search.send(solve_together(asked))
    except StopIteration as end:
        found: T = end.value
        return found
