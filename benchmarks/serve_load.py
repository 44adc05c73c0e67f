"""Load on `cuolr serve`: calls at a fixed rate over the loopback address, which do not wait for each other."""

import asyncio
import json
import re
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
DOCUMENTS, FEATURES = 40, 136
# Bodies that are sent in turn, and connections that are kept open.
BODIES, CONNECTIONS = 50, 64
SESSIONS, QUERIES = 2_000, 60


@dataclass
class Load:
    """What was seen.

    Attributes:
        latencies: Seconds from the planned start of each call to the end of its answer.
        errors: Calls without an answer of status 200.
    """

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def run() -> list[Row]:
    """Serve a LightGBM model of 136 features with a log, and send 40 named documents with each call."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        train_model(model)
        load = asyncio.run(put_load(model, Path(folder) / "log", RATE, SECONDS, FEATURES))
    p50, p99 = (1_000 * float(np.quantile(load.latencies, share)) for share in (0.5, 0.99))
    name = f"serve: {RATE} calls a second for {SECONDS:g} s, {DOCUMENTS} documents × {FEATURES} features"
    return [
        Row(f"{name}: answered", len(load.latencies), "calls", f"{RATE * SECONDS:,.0f}", not load.errors),
        Row(f"{name}: errors", len(load.errors), "calls", "0", not load.errors),
        Row(f"{name}: p50", p50, "ms", "", True),
        Row(f"{name}: p99", p99, "ms", "", True),
    ]


def train_model(folder: Path) -> None:
    """A model of LightGBM on a small generated log."""
    train, _, _ = cuolr.generate_splits("web10k-like", QUERIES, 10, 10, seed=1)
    log = cuolr.simulate(train, cuolr.fit_ranksvm(train, 0.2), cuolr.click_model("pbm"), sessions=SESSIONS)
    cuolr.Ranker("lightgbm", seed=1).fit(log).save(folder)


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
