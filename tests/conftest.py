"""What all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The same commit passes or fails the same way each time, however busy the machine is; HYPOTHESIS=search looks for new
# examples.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS", "same"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data sets that are not part of the project; tests that need them are skipped where they are not found."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not here: expected them in ../shared/data beside the project")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C; tests press it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, and no fixture that several tests share, reads or writes the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUOLR_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster of two nodes, a core each; this process is on the first."""
    pytest.importorskip("ray", reason="Ray is not here: pip install 'cuolr[ray]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes.add_node(num_cpus=1)
        yield nodes
    finally:
        nodes.shutdown()
