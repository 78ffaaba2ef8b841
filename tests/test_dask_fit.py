"""Training on Dask gives the model of memory, also if a worker is killed meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

from fragility import SatisficingClassifier
from fragility.ambiguity import KL, Wasserstein
from fragility.distributed import fit, fitting
from fragility.exceptions import PartitionError

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# Engines warn of much, also in threads of their own, where an error would stop them for good.
pytestmark = [pytest.mark.outside, pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as found:
        yield found


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(fitting, "_SAMPLE", 1 << 12)


def rows(n=6_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["y"] = np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=n) > 0.0, "yes", "no")
    frame["w"] = rng.exponential(size=n)
    return frame


def alone(ambiguity, frame):
    model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1)
    return model.fit(frame[list("abcd")], frame["y"], frame["w"])


def read(ambiguity, frame):
    model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1)
    return fit(model, frame, label="y", features=list("abcd"), weight="w")


@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=repr)
def test_models_of_memory(client, ambiguity):
    frame = rows()
    found = read(ambiguity, dd.from_pandas(frame, npartitions=7))
    assert found.fragility_ == pytest.approx(alone(ambiguity, frame).fragility_, rel=1e-6)
    assert 2 < found.n_passes_ <= 6


def slow(frame):
    time.sleep(0.1)
    return frame


def test_a_killed_worker_changes_no_model(client):
    frame = dd.from_pandas(rows(), npartitions=8)
    calm = read(Wasserstein(), frame)
    before = set(client.scheduler_info()["workers"])

    def kill():
        time.sleep(0.7)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = read(Wasserstein(), frame.map_partitions(slow))
    killer.join()
    client.wait_for_workers(2, timeout=60)
    assert set(client.scheduler_info()["workers"]) != before
    assert found.fragility_ == calm.fragility_
    assert found.coef_.tolist() == calm.coef_.tolist()


@pytest.mark.parametrize(("value", "said"), [(np.nan, "missing values"), (np.inf, "infinite")])
def test_a_bad_partition_is_named(client, value, said):
    frame = rows(700)
    frame.loc[350, "c"] = value
    with pytest.raises(PartitionError, match=said) as caught:
        read(KL(), dd.from_pandas(frame, npartitions=7))
    assert caught.value.partition == "partition 3"
