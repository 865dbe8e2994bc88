"""A deep network of tiny layers: the GPU is done before Python has launched the next kernel."""

import json

import torch
from planted import arguments, sim_gpu
from torch import nn


class Layers(nn.Sequential):
    """Tiny layers; on the GPU that is not there, as many tiny kernels."""

    def __init__(self, options):
        layers = [nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()) for _ in range(24)]
        super().__init__(*layers, nn.Linear(16, 4))
        self.simulated = options.device == "sim"

    def forward(self, x):
        if self.simulated:
            for _ in range(200):
                sim_gpu().launch(4e-6)
        return super().forward(x)


def main():
    options = arguments()
    torch.set_num_threads(1)
    model = Layers(options).to(options.place)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    x = torch.randn(32, 16, device=options.place)
    y = torch.randint(0, 4, (32,), device=options.place)
    for _ in range(150):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(json.dumps({"cause": "launch", "share": 1.0, "busy": None}))


if __name__ == "__main__":
    main()
