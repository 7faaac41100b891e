"""Figures of a pass under flat names, and the hooks that hand them to other tools, as the page shows them."""

import csv
import json
import os
import subprocess
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import pytest
from gristmill import _gristmill

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"


def shown(section: str) -> dict[str, Any]:
    """Runs the program that the page shows in a section; returns its names."""
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    names: dict[str, Any] = {"gm": gm}
    exec(text.split("```python\n")[1].split("```")[0], names)
    return names


def running(batches: int = 10) -> gm.DatasetIterator:
    return gm.MapDataset.range(batches * 4).map(lambda x: x + 1).to_iter_dataset().batch(4).loader(threads=2)


def test_figures_are_those_of_the_report() -> None:
    with running() as loader:
        assert len(list(loader)) == 10
        report, metrics = loader.report().as_dict(), gm.metrics(loader)
        assert metrics["input/elements"] == 10 and metrics["input/threads"] == 2
        assert metrics["input/wait_share"] == pytest.approx(report["consumer_wait_share"])
        assert metrics["input/stage_elements/1_map"] == 40
        causes = [value for name, value in metrics.items() if name.startswith("input/wait_s/")]
        assert len(causes) == 13 and sum(causes) == pytest.approx(sum(why["seconds"] for why in report["why"]))
        assert metrics == loader.report().metrics()
        assert all(type(name) is str and type(value) is float for name, value in metrics.items())
    assert gm.metrics(loader) == {}


def test_packed_rows_have_tokens_and_padding() -> None:
    lengths = [3, 5, 2, 8, 6, 7]
    ds = gm.MapDataset.source([{"ids": [1] * n} for n in lengths])
    rows = ds.to_iter_dataset().window_pack(length={"ids": 8}).batch(1)
    with rows.loader() as loader:
        cells = sum(batch["ids"].size for batch in loader)
        metrics = gm.metrics(loader)
    assert metrics["input/tokens"] == sum(lengths)
    assert metrics["input/padding_share"] == pytest.approx(1 - sum(lengths) / cells)


def test_worker_processes_have_figures() -> None:
    ds = gm.MapDataset.range(40).map(lambda x: x + 1).to_iter_dataset().batch(4)
    with ds.mp_prefetch(num_workers=1, ram_budget="1GiB", worker_heap="192MiB").loader() as loader:
        assert len(list(loader)) == 10
        metrics = gm.metrics(loader)
    assert metrics["input/workers"] == 1 and metrics["input/ram_budget_bytes"] == 1 << 30
    assert metrics["input/heap_bytes"] > 0


def test_any_thread_may_ask_while_the_pass_waits() -> None:
    begun, ended, asked = threading.Event(), threading.Event(), []

    def ask() -> None:
        while not ended.is_set():
            asked.append(gm.metrics(loader).get("input/elements", -1.0))
            begun.set()
            # Leaves the interpreter to the pass.
            time.sleep(0.001)

    ds = gm.MapDataset.range(60).map(lambda x: begun.wait(60) and x).to_iter_dataset().batch(2)
    for how in ({}, {"threads": 2}):
        asked.clear()
        begun.clear()
        ended.clear()
        with ds.loader(**how) as loader:
            asker = threading.Thread(target=ask)
            asker.start()
            assert len(list(loader)) == 30
            ended.set()
            asker.join()
        assert asked and asked == sorted(asked)


def test_a_function_of_the_pipeline_may_ask() -> None:
    seen: list[dict[str, float]] = []

    def asks(x: int) -> int:
        seen.append(gm.metrics(loaders[0]))
        return x

    loaders: list[gm.DatasetIterator] = [gm.MapDataset.range(3).map(asks).to_iter_dataset().loader()]
    assert list(loaders[0]) == [0, 1, 2] and seen == [{}, {}, {}]


def test_what_is_no_pass_is_told() -> None:
    for wrong in (gm.MapDataset.range(3), [1, 2], None):
        with pytest.raises(gm.ConfigError, match="no pass over a dataset"):
            gm.metrics(wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_gets_nothing() -> None:
    program = """
import os, sys, warnings
import gristmill as gm
warnings.simplefilter("ignore")
loader = gm.MapDataset.range(40).to_iter_dataset().batch(4).loader(threads=2)
next(loader)
child = os.fork()
if child == 0:
    os._exit(0 if gm.metrics(loader) == {} else 1)
assert os.waitpid(child, 0)[1] == 0
assert gm.metrics(loader)["input/elements"] == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_first_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PAGE.read_text().split("```python\n")[1].split("```")[0], {})
    out = capsys.readouterr().out
    assert out.count("input/wait_share") == 2 and "input/wait/head_of_line" in out


def test_every_name_of_the_page_is_one() -> None:
    names = {name for name, *_ in _gristmill._metric_families()}  # type: ignore[attr-defined]
    table = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `input/")]
    told = [name.split("/")[1] for line in table for name in line.split("`") if name.startswith("input/")]
    assert len(told) > 20 and set(told) <= names


def test_tensorboard(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="TensorBoard or PyTorch is not installed")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with running() as loader, tensorboard.SummaryWriter(tmp_path) as writer:
        next(loader)
        shown("TensorBoard")["log"](writer, loader, 7)
    written = accumulator.EventAccumulator(str(tmp_path)).Reload()
    (event,) = written.Scalars("input/elements")
    assert (event.step, event.value) == (7, 1.0)


def test_weights_and_biases(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    with running() as loader, wandb.init(mode="offline", dir=tmp_path, project="test") as run:
        next(loader)
        shown("Weights & Biases")["log"](run, loader, 7)
    (written,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert b"input/elements" in written.read_bytes()


def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    sent: list[dict[str, float]] = []
    # A tracking server is not what is tested; the names are checked as a client does.
    validate = pytest.importorskip("mlflow.utils.validation")._validate_metric
    monkeypatch.setattr(mlflow, "log_metrics", lambda metrics, step: sent.append(metrics))
    with running() as loader:
        next(loader)
        shown("MLflow")["log"](loader, 7)
    assert sent[0]["input/elements"] == 1.0
    for name, value in sent[0].items():
        validate(name, value, 0, 7)


def test_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    loggers = pytest.importorskip("lightning.pytorch.loggers")

    class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return (self.weight - batch.float().mean()) ** 2

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    logger = loggers.CSVLogger(tmp_path)
    with running() as loader:
        hook = shown("Lightning")["InputMetrics"](loader, every=5)
        quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
        trainer = lightning.Trainer(max_epochs=1, callbacks=[hook], logger=logger, accelerator="cpu", **quiet)
        trainer.fit(Model(), map(gm.torch.to_tensors, loader))
    with open(Path(logger.log_dir) / "metrics.csv") as file:
        rows = [row for row in csv.DictReader(file) if row.get("input/elements")]
    assert [row["step"] for row in rows] == ["5", "10"]


def trainer_of_transformers(tmp_path: Path, loader: Any) -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate, which the Trainer needs, is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, x: Any) -> Any:
            return {"loss": (self.weight - x.float().mean()) ** 2}

    class Batches(transformers.Trainer):  # type: ignore[misc,name-defined]
        def get_train_dataloader(self) -> Any:
            return ({"x": torch.as_tensor(batch)} for batch in loader)

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=6, logging_steps=3, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True
    )
    return Batches(model=Model(), args=arguments)


def test_hugging_faces_trainer(tmp_path: Path) -> None:
    with running() as loader:
        trainer = trainer_of_transformers(tmp_path, loader)
        shown("Hugging Face's Trainer")["add_to"](trainer, loader)
        seen: list[float] = []
        import transformers

        class Reads(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
            def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
                seen.append(logs["input/elements"])

        trainer.add_callback(Reads())
        trainer.train()
    assert len(seen) >= 2 and seen == sorted(seen)


def test_the_callback_of_transformers_alone() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    with running() as loader:
        next(loader)
        hook = shown("Hugging Face's Trainer")["InputMetrics"](loader)
        logs = {"loss": 1.0}
        hook.on_log(None, None, None, logs=logs)
        hook.on_log(None, None, None)
    assert logs["loss"] == 1.0 and logs["input/elements"] == 1.0


def test_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    pytest.importorskip("jax", reason="JAX is not installed")
    keras = pytest.importorskip("keras", reason="keras is not installed")
    np = pytest.importorskip("numpy")
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    with running() as loader:
        hook = shown("Keras")["InputMetrics"](loader)
        data = ((np.asarray(batch, "float32")[:, None] / 40, np.zeros((len(batch), 1))) for batch in loader)
        path = tmp_path / "log.csv"
        model.fit(data, steps_per_epoch=5, epochs=1, callbacks=[hook, keras.callbacks.CSVLogger(str(path))], verbose=0)
    with open(path) as file:
        (row,) = csv.DictReader(file)
    assert float(row["input/elements"]) >= 5


def collected(reader: Any) -> dict[str, Any]:
    """What a reader in memory collects, by name."""
    data = json.loads(reader.get_metrics_data().to_json())
    scopes = [scope for resource in data["resource_metrics"] for scope in resource["scope_metrics"]]
    return {metric["name"]: metric for scope in scopes for metric in scope["metrics"]}


@pytest.fixture
def opentelemetry() -> Any:
    missing = "OpenTelemetry's SDK is not installed: pip install opentelemetry-sdk"
    sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason=missing)
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    return types.SimpleNamespace(reader=reader, provider=sdk.MeterProvider([reader]))


def test_opentelemetry(opentelemetry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gm.otel, "_FRESH", 0.0)
    with running() as loader:
        shown("OpenTelemetry")["offer"](loader, opentelemetry.provider)
        assert len(list(loader)) == 10
        found = collected(opentelemetry.reader)
        (elements,) = found["gristmill.input.elements"]["data"]["data_points"]
        assert elements["value"] == 10 and elements["attributes"] == {"pass": "train"}
        assert found["gristmill.input.elements"]["data"]["is_monotonic"]
        assert found["gristmill.input.run_s"]["unit"] == "s"
        assert "is_monotonic" not in found["gristmill.input.wait_share"]["data"]
        stages = found["gristmill.input.stage_elements"]["data"]["data_points"]
        assert {point["attributes"]["stage"]: point["value"] for point in stages}["1_map"] == 40
        causes = found["gristmill.input.wait"]["data"]["data_points"]
        assert {point["attributes"]["cause"] for point in causes} >= {"start", "head_of_line"}
    assert opentelemetry.reader.get_metrics_data() is None or collected(opentelemetry.reader) == {}


def test_instruments_do_not_keep_a_pass(opentelemetry: Any) -> None:
    loader = running()
    gm.otel.instrument(loader, opentelemetry.provider.get_meter("train"))
    alive: Callable[[], Any] = weakref.ref(loader)
    del loader
    assert alive() is None
    assert opentelemetry.reader.get_metrics_data() is None or collected(opentelemetry.reader) == {}
