"""A run against a server that fails, resets and throttles: every sample comes, same digest."""

import pytest


@pytest.mark.parametrize("kind", ["http", "s3", "az"])
def test_a_bad_server_costs_time_and_nothing_else(place, expected, kind, request):
    """5 % of requests fail, 2 % are reset, 1 % cut in the body, and what is over 400 a second is
    throttled."""
    seconds = request.config.getoption("--long")
    server, stoker, source = place(kind, seed=7)
    stoker("index", source)
    epochs = max(1, int(seconds * 8))
    wanted = stoker.digest(source, "--epochs", epochs, "--shuffle", limit=seconds * 10 + 60)
    server.forget()
    failed = server.fault("status", "*.tar", status=500, chance=0.05)
    broken = server.fault("reset", "*.tar", chance=0.02)
    cut = server.fault("cut", "*.tar", method="GET", chance=0.01, reset=True)
    server.fault("throttle", "*.tar", rate=400)
    limit = seconds * 20 + 60
    got = stoker.digest(source, "--epochs", epochs, "--shuffle", limit=limit)
    assert got == wanted
    assert failed.count and broken.count + cut.count
