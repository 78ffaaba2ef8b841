"""The Lightning callback: what it logs, schedules and keeps, against the library's own numbers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
lightning = pytest.importorskip("lightning.pytorch")

from lightning.pytorch.loggers import CSVLogger  # noqa: E402

from fragility import fragility_index, measure_fragility  # noqa: E402
from fragility.calibration import cross_fitted_calibration  # noqa: E402
from fragility.torch import (  # noqa: E402
    FragilityCallback,
    FragilityRegularizer,
    MulticlassFragilityIndex,
    linear_ramp,
    metrics,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*The number of training batches"),
    pytest.mark.filterwarnings("ignore:.*tensorboardX"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*"),
    pytest.mark.filterwarnings("ignore:.*Checkpoint directory"),
]


def drawn(n_classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    x = rng.normal(size=(n, 4)) + np.eye(4)[labels]
    return torch.utils.data.TensorDataset(torch.tensor(x).float(), torch.tensor(labels))


class Classifier(lightning.LightningModule):
    def __init__(self, n_classes=3, outputs=None, rates=None):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, outputs or n_classes)
        self.regularizer = FragilityRegularizer(self.layer)
        self.register_buffer("gain", torch.tensor(1.0))
        self.plain, self.rates, self.seen = 0.5, rates or [0.1] * 9, []
        self.scores, self.validation_set = [], drawn(n_classes, seed=1)

    def training_step(self, batch, _):
        self.seen.append((self.regularizer.strength, self.gain.item(), self.plain))
        logits = self.layer(batch[0])
        if logits.shape[1] == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        rate = self.rates[self.current_epoch]
        return rate * torch.nn.functional.cross_entropy(logits, batch[1]) + 0 * self.regularizer()

    def validation_step(self, batch, _):
        return {"logits": self.layer(batch[0]), "y_true": batch[1]}

    def on_validation_epoch_end(self):
        if self.trainer.state.stage == "validate" and self.trainer.state.fn == "fit":
            self.scores.append(expected(self)["val_cross_entropy_fragility"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=5.0)

    def train_dataloader(self):
        n_classes = max(len(self.layer.weight), 2)
        return torch.utils.data.DataLoader(drawn(n_classes), batch_size=20)

    def val_dataloader(self):
        return torch.utils.data.DataLoader(self.validation_set, batch_size=25)


def trainer_of(callback, folder, **settings):
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "accelerator": "cpu",
        "default_root_dir": folder,
        "max_epochs": 3,
    }
    return lightning.Trainer(callbacks=callback and [callback], **(quiet | settings))


def expected(model, calibrated=True):
    """What must be logged for the model as it is."""
    x, labels = (t.numpy() for t in model.validation_set.tensors)
    with torch.no_grad():
        logits = model.layer(torch.from_numpy(x)).double().numpy()
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    cross_entropy = -np.log(probs[np.arange(len(labels)), labels]).mean()
    scores = probs[:, 1] if probs.shape[1] == 2 else probs
    found = measure_fragility(labels, scores)
    capped = np.nanmean(np.minimum(found.pairs, 10.0))
    method = "platt" if scores.ndim == 1 else "temperature"
    fair = cross_fitted_calibration(labels, scores, method=method)
    figures = {
        "val_fragility": found.value,
        "val_fragility_ratio": found.ratio,
        "val_fragility_calibrated": fragility_index(labels, fair),
        "val_cross_entropy": cross_entropy,
        "val_cross_entropy_fragility": cross_entropy + capped,
    }
    if not calibrated:
        del figures["val_fragility_calibrated"]
    return figures


@pytest.mark.parametrize(("n_classes", "outputs"), [(3, 3), (2, 2), (2, 1)])
@pytest.mark.parametrize("calibrated", [True, False])
def test_logged_figures(n_classes, outputs, calibrated, tmp_path):
    model = Classifier(n_classes, outputs)
    trainer = trainer_of(FragilityCallback(n_classes, calibrated=calibrated), tmp_path)
    trainer.fit(model)
    logged = {name: value.item() for name, value in trainer.logged_metrics.items()}
    assert logged == pytest.approx(expected(model, calibrated), rel=1e-5)


def test_infinite_pairs_are_capped_in_the_sum(tmp_path):
    model = Classifier(3)
    with torch.no_grad():
        model.layer.weight.copy_(-0.05 * torch.eye(4)[:3])
    trainer = trainer_of(FragilityCallback(3), tmp_path)
    (logged,) = trainer.validate(model, verbose=False)
    assert logged["val_fragility"] == float("inf")
    assert 1.0 < logged["val_cross_entropy_fragility"] < 12.0
    assert logged == pytest.approx(expected(model), rel=1e-5)


def test_too_few_samples_are_not_a_number(tmp_path):
    model = Classifier(2)
    x, labels = model.validation_set.tensors
    model.validation_set = torch.utils.data.TensorDataset(x[labels == 1], labels[labels == 1])
    trainer = trainer_of(FragilityCallback(2, keep_best=True), tmp_path)
    with pytest.warns(UserWarning, match="1 of 2 have samples"):
        (logged,) = trainer.validate(model, verbose=False)
    assert np.isnan(logged["val_fragility"])
    assert np.isnan(logged["val_fragility_calibrated"])
    assert np.isfinite(logged["val_cross_entropy"])


def test_weights_by_epoch(tmp_path):
    model = Classifier(3)
    weights = {
        "regularizer.strength": linear_ramp(0.4, warmup=1, ramp=2),
        "gain": lambda epoch: epoch + 1.0,
        "plain": lambda epoch: 10.0 * epoch,
    }
    trainer_of(FragilityCallback(3, weights=weights), tmp_path).fit(model)
    by_epoch = [(0.0, 1.0, 0.0), (0.2, 2.0, 10.0), (0.4, 3.0, 20.0)]
    assert [value for seen in model.seen[::3] for value in seen] == pytest.approx(
        [value for numbers in by_epoch for value in numbers]
    )


def test_ramp_is_the_one_of_the_experiments():
    for warmup, ramp in ((0, 0), (5, 10), (3, 0), (0, 4)):
        schedule = linear_ramp(0.3, warmup, ramp)
        for epoch in range(20):
            literal = 0.0 if epoch < warmup else min(1.0, (epoch - warmup + 1) / max(ramp, 1))
            assert schedule(epoch) == pytest.approx(0.3 * literal)


def test_best_epoch_is_put_back_and_saved(tmp_path):
    rates = [0.02, 0.05, -0.5, -0.5]  # it unlearns
    callback = FragilityCallback(3, keep_best=True)
    model = Classifier(3, rates=rates)
    trainer = trainer_of(callback, tmp_path, max_epochs=4)
    trainer.fit(model)
    assert callback.best_epoch == np.argmin(model.scores)
    assert callback.best_epoch in (0, 1, 2)
    kept = expected(model)["val_cross_entropy_fragility"]
    assert kept == pytest.approx(min(model.scores), rel=1e-6)
    assert callback.best_score == pytest.approx(kept, rel=1e-6)
    assert model.scores[-1] > 1.01 * kept
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    resumed = FragilityCallback(3, keep_best=True)
    again = Classifier(3, rates=[*rates, -0.5])
    trainer_of(resumed, tmp_path, max_epochs=5).fit(again, ckpt_path=tmp_path / "last.ckpt")
    assert (resumed.best_epoch, resumed.best_score) == (callback.best_epoch, callback.best_score)
    assert torch.equal(again.layer.weight, model.layer.weight)


class Logging(Classifier):
    """With a metric that is called in every training step and logged as a whole."""

    def __init__(self):
        super().__init__(3)
        self.metric = MulticlassFragilityIndex(3)
        self.probs = []

    def training_step(self, batch, index):
        self.probs.append((self.layer(batch[0]).softmax(1).detach(), batch[1]))
        self.metric(*self.probs[-1])
        self.log("fragility", self.metric, on_step=True, on_epoch=True)
        return super().training_step(batch, index)


def test_a_metric_in_every_step_is_computed_when_it_is_logged(tmp_path, monkeypatch):
    computed, function = [], metrics.fragility_index

    def counting(*args, **kwargs):
        computed.append(function(*args, **kwargs).item())
        return function(*args, **kwargs)

    monkeypatch.setattr(metrics, "fragility_index", counting)
    model = Logging()
    settings = {"logger": CSVLogger(tmp_path), "log_every_n_steps": 4, "limit_val_batches": 0}
    trainer = trainer_of(None, tmp_path, max_epochs=2, **settings)
    trainer.fit(model)
    assert len(model.probs) == 6
    # One step of six is the fourth, and two epochs end.
    assert len(computed) == 3
    last = MulticlassFragilityIndex(3)
    for probs, labels in model.probs[3:]:
        last.update(probs, labels)
    assert trainer.logged_metrics["fragility_epoch"].item() == pytest.approx(last.compute().item())
    for place, found in ((3, computed[1]), (5, trainer.logged_metrics["fragility_step"].item())):
        step = MulticlassFragilityIndex(3)
        step.update(*model.probs[place])
        assert found == step.compute().item()


def test_bad_use(tmp_path):
    model = Classifier(3)
    trainer = trainer_of(FragilityCallback(3, y_true="truth"), tmp_path)
    with pytest.raises(ValueError, match=r"'logits' and 'truth'; it returned a mapping with"):
        trainer.validate(model, verbose=False)
    model.validation_step = lambda batch: torch.tensor(1.0)
    with pytest.raises(ValueError, match="it returned Tensor"):
        trainer_of(FragilityCallback(3), tmp_path).validate(model, verbose=False)
    with pytest.raises(TypeError, match=r"such as linear_ramp\(0.1\); got float"):
        FragilityCallback(3, weights={"plain": 0.1})
    for name in ("nothing", "layer.nothing", "no.thing"):
        callback = FragilityCallback(3, weights={name: linear_ramp(1.0)})
        with pytest.raises(AttributeError, match=f"Classifier has no attribute '{name}'"):
            trainer_of(callback, tmp_path).fit(Classifier(3))
    callback = FragilityCallback(3, weights={"plain": lambda epoch: float("nan")})
    with pytest.raises(ValueError, match="'plain' must be finite"):
        trainer_of(callback, tmp_path).fit(Classifier(3))
    callback = FragilityCallback(3, weights={"plain": lambda epoch: 10**400})
    with pytest.raises(ValueError, match="'plain' must be a number that floating point holds"):
        trainer_of(callback, tmp_path).fit(Classifier(3))
