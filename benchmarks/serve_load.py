"""Load on `cuolr serve`: calls at a fixed rate over the loopback address, which do not wait for each other."""

import asyncio
import json
import re
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import cuolr
from benchmarks.table import Row

RATE, SECONDS = 200, 60.0
# Documents of a call, and generated data: 10 and 136 features.
DOCUMENTS, DATA = 40, ("tiny", "web10k-like")
# Bodies that are sent in turn, and connections that are kept open.
BODIES, CONNECTIONS = 50, 64
SESSIONS, QUERIES = 2_000, 60


@dataclass
class Load:
    """What was seen.

    Attributes:
        latencies: Seconds from the planned start of each call to the end of its answer.
        errors: Calls without an answer of status 200.
        seconds: From the first call to the last answer.
    """

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run() -> list[Row]:
    """Serve LightGBM models with a log, and send 40 named documents with each call."""
    return [row for data in DATA for row in _measure(data)]


def _measure(data: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        features = train_model(model, data)
        before = _seconds_of_children()
        load = asyncio.run(put_load(model, Path(folder) / "log", RATE, SECONDS, features))
        cpu = 1_000 * (_seconds_of_children() - before) / (RATE * SECONDS)
    p50, p99 = (1_000 * float(np.quantile(load.latencies, share)) for share in (0.5, 0.99))
    name = f"serve: {RATE} calls a second for {SECONDS:g} s, {DOCUMENTS} documents × {features} features"
    rate = len(load.latencies) / load.seconds
    return [
        Row(f"{name}: errors", len(load.errors), "calls", "0", not load.errors),
        Row(f"{name}: answered a second", rate, "calls", f"≥ {0.98 * RATE:g}", rate >= 0.98 * RATE),
        Row(f"{name}: p50", p50, "ms", "", True),
        Row(f"{name}: p99", p99, "ms", "", True),
        Row(f"{name}: time of the processor for a call", cpu, "ms", "", True),
    ]


def train_model(folder: Path, data: str) -> int:
    """A model of LightGBM on a small generated log; returns the number of its features."""
    train, _, _ = cuolr.generate_splits(data, QUERIES, 10, 10, seed=1)
    log = cuolr.simulate(train, cuolr.fit_ranksvm(train, 0.2), cuolr.click_model("pbm"), sessions=SESSIONS)
    cuolr.Ranker("lightgbm", seed=1).fit(log).save(folder)
    return train.candidates.n_features


def _seconds_of_children() -> float:
    """Time of the processor that ended processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def put_load(model: Path, log: Path, rate: float, seconds: float, features: int) -> Load:
    """Call at a fixed rate, whether or not earlier calls are answered.

    Args:
        model: Folder of the model.
        log: Folder of the log.
        rate: Calls a second.
        seconds: How long.
        features: Of each document, named by number.
    """
    load = Load()
    async with _service(model, log) as (host, port):
        bodies = _bodies(features, f"{host}:{port}")
        connections: asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.LifoQueue()
        for _ in range(CONNECTIONS):
            connections.put_nowait(await asyncio.open_connection(host, port))
        started, calls = time.perf_counter(), []
        for number in range(int(rate * seconds)):
            planned = started + number / rate
            await asyncio.sleep(max(0.0, planned - time.perf_counter()))
            calls.append(asyncio.create_task(_call(connections, bodies[number % BODIES], planned, load)))
        await asyncio.gather(*calls)
        load.seconds = time.perf_counter() - started
        while not connections.empty():
            connections.get_nowait()[1].close()
    return load


@asynccontextmanager
async def _service(model: Path, log: Path) -> AsyncIterator[tuple[str, int]]:
    """A service at any free port."""
    command = (sys.executable, "-m", "cuolr", "serve", str(model), "--port", "0", "--log", str(log))
    service = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert service.stderr is not None
    try:
        match = re.search(r"http://(\S+):(\d+)", (await service.stderr.readline()).decode())
        assert match is not None, "the service did not start"
        yield match[1], int(match[2])
    finally:
        service.terminate()
        await service.wait()


def _bodies(features: int, host: str) -> list[bytes]:
    """Calls with random documents."""
    rng = np.random.default_rng(1)
    bodies = []
    for number in range(BODIES):
        values = rng.random((DOCUMENTS, features)).round(4)
        documents = [
            {"id": f"d{place}", "features": {str(name): value for name, value in enumerate(row, start=1)}}
            for place, row in enumerate(values.tolist())
        ]
        content = json.dumps({"query": f"q{number}", "documents": documents}).encode()
        head = f"POST /rank HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        bodies.append(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return bodies


async def _call(
    connections: "asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter]]",
    body: bytes,
    planned: float,
    load: Load,
) -> None:
    """One call on a connection that is free."""
    reader, writer = await connections.get()
    try:
        writer.write(body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None, head
        await reader.readexactly(int(length[1]))
        if not head.startswith(b"HTTP/1.1 200"):
            load.errors.append(head.decode().partition("\r\n")[0])
        load.latencies.append(time.perf_counter() - planned)
        connections.put_nowait((reader, writer))
    except (OSError, EOFError, AssertionError, asyncio.LimitOverrunError) as error:
        load.errors.append(type(error).__name__)
        connections.put_nowait(await asyncio.open_connection(*writer.get_extra_info("peername")[:2]))
