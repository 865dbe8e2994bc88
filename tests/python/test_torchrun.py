"""Ranks started by torchrun, on one node and on two, over loopback: FAULTS 98 for real."""

import json
import os
import socket
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = """
import json, os, sys
import torch
import torch.distributed as distributed
import stoker

distributed.init_process_group("gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = stoker.Loader(sys.argv[1], 8, shuffle=True, seed=1)
assert (loader.rank, loader.world_size) == (rank, world)
epochs = []
for _ in range(2):
    steps = []
    for batch in loader:
        logits = model(batch["npy"].flatten(1))
        losses = torch.nn.functional.cross_entropy(logits, batch["cls"], reduction="none")
        (losses * batch["mask"]).sum().backward()  # a rank without samples still takes the step
        optimizer.step()
        optimizer.zero_grad()
        steps.append([n for n in batch.samples.tolist() if n >= 0])
    epochs.append(steps)
loader.close()
with open(f"{sys.argv[2]}/{rank}.json", "w") as file:
    json.dump(epochs, file)
distributed.destroy_process_group()
os._exit(0)  # PyTorch's gloo aborts one process in ten while Python shuts down, without Stoker too
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(arguments, script, *rest):
    command = [sys.executable, "-m", "torch.distributed.run", *arguments, str(script)]
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    return subprocess.Popen(
        [*command, *map(str, rest)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
    )


def finish(processes):
    try:
        outputs = [process.communicate(timeout=200)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output


def check(folder, world, samples):
    ranks = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]
    for epoch in range(2):
        shares = [rank[epoch] for rank in ranks]
        assert len({len(share) for share in shares}) == 1
        seen = [n for share in shares for step in share for n in step]
        assert sorted(seen) == list(range(samples))
    assert ranks[0][0] != ranks[0][1]


def test_98_two_processes_on_one_node(shards, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    arguments = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    arguments += ["--master-port", str(free_port())]
    finish([start(arguments, script, shards, tmp_path)])
    check(tmp_path, 2, 100)


def test_98_two_nodes_of_one_process(shards, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    port = str(free_port())
    nodes = []
    for node in range(2):
        arguments = ["--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "1"]
        arguments += ["--master-addr", "127.0.0.1", "--master-port", port]
        nodes.append(start(arguments, script, shards, tmp_path))
    finish(nodes)
    check(tmp_path, 2, 100)
