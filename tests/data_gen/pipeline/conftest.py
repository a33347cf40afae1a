"""A Ray cluster of two nodes on this machine."""

import pytest
import pytest_socket


@pytest.fixture
def ray_cluster(monkeypatch):
    """Two nodes with one CPU each."""
    pytest_socket.enable_socket()
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    pytest_socket.disable_socket()
