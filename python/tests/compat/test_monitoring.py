"""Grain's metrics and the messages of its debug mode: what ours give, and that Grain's give the same."""

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# What either library's metrics leave in Prometheus: `program WHEEL|SHIM`.
METRICS = """
import json, logging, sys
if sys.argv[1] == "SHIM":
    import gristmill.compat.grain
    gristmill.compat.grain.install()
else:
    sys.path.insert(0, sys.argv[1])
import prometheus_client
from grain import monitoring
if sys.argv[1] != "SHIM":
    # Grain has made all five of its own already; two are recorded below.
    from grain._src.core import prometheus_monitoring
    made = prometheus_monitoring._prometheus_metrics
    for name in [name for name in made if not name.endswith(("bytes_read", "source_read_time_ns"))]:
        prometheus_client.REGISTRY.unregister(made.pop(name))

logging.disable()
data = "/grain/python/dataset/"
seconds = monitoring.Metadata("Times.", units=monitoring.Units.SECONDS)
monitoring.record_bytes_read_and_latency("mine", num_bytes=1000, latency_ns=8000, num_reads=2)
read = monitoring.Counter("/grain/python/data_sources/bytes_read", monitoring.Metadata("Again."), [("source", str)])
read.Increment("mine")
read.IncrementBy(5, source="yours")
read.Increment("a label", "too many")
ready = monitoring.EventMetric(data + "prefetch_buffer_ready_count", buckets=[1.0, 2.0])
ready.Record(2)
get = monitoring.EventMetric(
    "/grain/python/data_loader/iterator_get_next", seconds, bucketer=monitoring.Bucketer.PowersOf(10.0)
)
get.Record(0.5)
gauge = monitoring.Metric(data + "next_duration_ns", int, fields=[("node", int)])
gauge.Set(7, 3)
monitoring.Counter("/mine/of/no/name", seconds).Increment()
nothing = [read.Get("mine"), gauge.Get(3), get.Get(), read.ClearAll(), monitoring.get_monitoring_root()]
monitoring.record_framework_type("x")
monitoring.record_autotune_parameter("node", "name", 1.0)
monitoring.record_autotune_node_throughput("node", 1.0)
monitoring.record_autotune_usl_coeff("node", "name", 1.0)
monitoring.record_autotune_optimization_latency(1.0)
monitoring.set_debug_server_ports([1])
samples = {
    f"{sample.name} {json.dumps(sample.labels)}": sample.value
    for metric in prometheus_client.REGISTRY.collect()
    for sample in metric.samples
    if not sample.name.endswith("_created") and not sample.name.startswith(("python_", "process_"))
}
print(json.dumps([nothing, samples]))
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=200)


def metrics(library: str) -> tuple[list[Any], dict[str, float]]:
    done = run(METRICS, library)
    assert done.returncode == 0, done.stderr[-4000:]
    nothing, samples = json.loads(done.stdout.splitlines()[-1])
    return nothing, samples


def wheel() -> str:
    if "GRAIN_WHEEL" not in os.environ:
        pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
    return os.environ["GRAIN_WHEEL"]


def test_prometheus_sees_what_is_recorded() -> None:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")
    nothing, samples = metrics("SHIM")
    assert nothing == [0.0, 0.0, 0.0, None, None]
    assert samples['grain_python_data_sources_bytes_read_total {"source": "mine"}'] == 1001
    assert samples['grain_python_data_sources_bytes_read_total {"source": "yours"}'] == 5
    assert samples['grain_python_dataset_source_read_time_ns_sum {"source": "mine"}'] == 8000
    assert samples['grain_python_dataset_source_read_time_ns_count {"source": "mine"}'] == 2
    assert samples['grain_python_data_loader_iterator_get_next_bucket {"le": "1.0"}'] == 1
    assert not any("of_no_name" in name for name in samples)


def test_metrics_are_grains() -> None:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")
    assert metrics("SHIM") == metrics(wheel())


def test_metrics_need_no_package() -> None:
    hidden = "import sys\nsys.modules['prometheus_client'] = None\n"
    # All of it but for what looks into Prometheus.
    program = METRICS.replace("import prometheus_client\n", "").split("samples = ")[0] + "print(nothing)"
    done = run(hidden + program, "SHIM")
    assert done.stdout.strip() == "[0.0, 0.0, 0.0, None, None]", done.stderr


SERVED = """
import urllib.request
import gristmill.compat.grain as grain
grain.monitoring._PORT = 0
import prometheus_client
started = []
def start(port, **kwargs):
    server, thread = begin(port, addr="127.0.0.1", **kwargs)
    started.append(server)
begin, prometheus_client.start_http_server = prometheus_client.start_http_server, start
grain.monitoring.setup_telemetry()
grain.monitoring.setup_telemetry()
grain.monitoring.record_bytes_read_and_latency("mine", num_bytes=4, latency_ns=8, num_reads=1)
for server in started:
    text = urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", timeout=60).read().decode()
    print(*[line for line in text.splitlines() if "bytes_read_total{" in line])
"""


@pytest.mark.parametrize("workers", [False, True])
def test_metrics_are_served_when_asked(workers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")
    monkeypatch.delenv("ENABLE_PYGRAIN_PROMETHEUS_TELEMETRY", raising=False)
    assert run(SERVED).stdout == ""
    if workers:
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    monkeypatch.setenv("ENABLE_PYGRAIN_PROMETHEUS_TELEMETRY", "true")
    done = run(SERVED)
    assert done.stdout.strip() == 'grain_python_data_sources_bytes_read_total{source="mine"} 4.0', done.stderr


def summary(messages: Any) -> Any:
    """A summary of two nodes, every field of which says something."""
    found = messages.ExecutionSummary()
    for number, of in enumerate(["map", "prefetch"]):
        node = found.nodes[number]
        node.id, node.name, node.output_spec = number, of, "int64[]"
        node.inputs.extend([1, 2])
        node.wait_time_ratio, node.is_output, node.is_prefetch = 0.25, number == 0, True
        node.total_processing_time_ns, node.min_processing_time_ns, node.max_processing_time_ns = 1 << 40, 3, 4
        node.num_produced_elements, node.bytes_consumed, node.bytes_produced = 5, 6, -7
    return found


def test_a_summary_is_read_as_it_was_written() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from gristmill.compat.grain.proto import execution_summary_pb2 as messages

    ours = summary(messages)
    assert messages.ExecutionSummary.FromString(ours.SerializeToString()) == ours
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert messages.ExecutionSummary.Node(id=1) == messages.ExecutionSummary.Node.FromString(b"\x10\x01")
    both = messages.ExecutionSummaries(execution_summaries=[ours, ours])
    assert messages.ExecutionSummaries.FromString(both.SerializeToString()).execution_summaries[1] == ours


def test_messages_are_grains() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from gristmill.compat.grain.proto import execution_summary_pb2 as ours

    path = Path(wheel()) / "grain" / "proto" / "execution_summary_pb2.py"
    spec = importlib.util.spec_from_file_location("grain_messages", path)
    assert spec is not None and spec.loader is not None
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    assert ours.DESCRIPTOR.serialized_pb == theirs.DESCRIPTOR.serialized_pb
    # The order of a map's entries is nobody's promise.
    written = summary(theirs).SerializeToString(deterministic=True)
    assert summary(ours).SerializeToString(deterministic=True) == written
    assert ours.ExecutionSummary.FromString(written) == summary(ours)


def test_messages_say_what_they_need() -> None:
    program = """
import sys
sys.modules["google.protobuf"] = None
import gristmill.compat.grain
gristmill.compat.grain.install()
import grain
import grain.proto
print(hasattr(grain, "monitoring"))
grain.proto.execution_summary_pb2
"""
    done = run(program)
    assert done.stdout.strip() == "True"
    assert "ImportError: grain.proto needs the package protobuf: pip install protobuf" in done.stderr


def test_programs_find_both() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    program = """
import gristmill.compat.grain
gristmill.compat.grain.install()
import grain
grain.proto.execution_summary_pb2.ExecutionSummaries
import grain.monitoring
import grain.proto.execution_summary_pb2 as whole
from grain._src.core import monitoring
from grain.proto import execution_summary_pb2
assert monitoring.Counter is grain.monitoring.Counter is gristmill.compat.grain.monitoring.Counter
assert whole.ExecutionSummary is execution_summary_pb2.ExecutionSummary
print(monitoring.Units.BYTES)
"""
    done = run(program)
    assert done.stdout.strip() == "Units.BYTES", done.stderr
