"""The two models that are trained. They are fixed: figures of different runs compare."""

import torch
from torch import nn

BATCH = 32  # of the 3D-CNN
LSTM_BATCH, LSTM_HIDDEN = 1024, 64


class Training:
    """A model, its optimiser and its loss: step((x, y)) is one step of training.

    On a GPU the step is captured once into a CUDA graph, and every batch is copied to where the
    graph reads. These models are small: launched one by one from Python, their kernels take longer
    to launch than to run, so the GPU would wait for the CPU whoever brings the data. eager=True
    launches them so.
    """

    def __init__(self, model, loss, device, eager=False):
        self.model = model.to(device)
        self.loss = loss
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self._is_captured = device == "cuda" and not eager
        self._graph = self._places = None

    def step(self, batch):
        x, y = batch
        if not self._is_captured:
            self._train(x, y)
            return len(x), x.nbytes
        if self._graph is None:
            self._capture(x, y)
        for place, value in zip(self._places, (x, y), strict=True):
            place.copy_(value)
        self._graph.replay()
        return len(x), x.nbytes

    def _train(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(x), y).backward()
        self.optimizer.step()

    def _capture(self, x, y):
        """As PyTorch's notes on CUDA graphs say: warm up in another stream, then capture."""
        self._places = x.clone(), y.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._train(*self._places)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        # DataLoader pins memory in a thread of its own meanwhile
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._train(*self._places)


def cnn(device, eager=False):
    """Conv3d 3-16-32-64, kernel 3, stride 2, padding 1; half precision, cross entropy."""
    layers = []
    for inner, outer in (3, 16), (16, 32), (32, 64):
        layers += [nn.Conv3d(inner, outer, kernel_size=3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 10)]
    model = nn.Sequential(*layers)
    dtype = torch.float16 if device == "cuda" else torch.float32  # half is for GPUs
    training = Training(model.to(dtype), nn.functional.cross_entropy, device, eager)
    training.dtype = dtype
    return training


class _Lstm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.lstm = nn.LSTM(features, LSTM_HIDDEN, batch_first=True)
        self.head = nn.Linear(LSTM_HIDDEN, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def lstm(features, device):
    """An LSTM over a window of rows that tells one value of the next row; float32, mean square."""

    def loss(got, wanted):
        return nn.functional.mse_loss(got, wanted.reshape(got.shape))

    return Training(_Lstm(features), loss, device)
