"""Certificates, proofs and measured shifts are as before the library was rebuilt."""

import warnings
from pathlib import Path

import pytest

from .ask import ask_certificate, ask_proof, ask_shift
from .certificates import certified, proved, shifted
from .compare import Tolerance, differences, plain, read_bank, relative_above_one

BANK = read_bank(Path(__file__).parent / "certificates.json.gz")
EXACT_BOUNDS = relative_above_one(1e-6)
#: How far from the data the worst case of a trained model is follows from its coefficients.
TOLERANCES = {
    "": EXACT_BOUNDS,
    "critical_distance": Tolerance(1e-4),
    "certified_distance": Tolerance(1e-4),
}


def compared(part, questions, ask_one):
    """Differences of a part of the bank by name, one line each."""
    assert sorted(questions) == sorted(BANK[part])
    lines = []
    for name, what in questions.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = plain({"what": what} | ask_one(what))
        lines += [f"{name}: {line}" for line in differences(BANK[part][name], answer, TOLERANCES)]
    return lines


CASES = certified()


@pytest.mark.parametrize("name", CASES)
def test_certificate_of_given_coefficients(name):
    case = CASES[name]
    answer = plain({"what": case} | ask_certificate(case))
    assert not (lines := differences(BANK["certified"][name], answer, TOLERANCES)), "\n".join(lines)


def test_every_recorded_certificate_is_asked():
    assert sorted(CASES) == sorted(BANK["certified"])


def test_proofs():
    assert not (lines := compared("proved", proved(), ask_proof)), "\n".join(lines)


def test_measured_shifts():
    assert not (lines := compared("shifted", shifted(), ask_shift)), "\n".join(lines)
