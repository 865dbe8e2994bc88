"""The sides of the `jpeg` benchmark: ways from JPEGs to normalised batches on the GPU."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from bench import machine
from bench.gpu import data, loop
from bench.jpeg_sides import SIZE, draw_box

BATCH = 256
CHAIN = f"RandomResizedCrop({SIZE}) | RandomHorizontalFlip | Normalize(imagenet) | Layout(CHW)"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def _draw(batch):
    return len(batch), batch.nbytes


def _check(batch):
    if batch.device.type != loop.DEVICE or batch.dtype != torch.float32:
        raise RuntimeError(f"a batch is {batch.dtype} on {batch.device}")
    if tuple(batch.shape[1:]) != (3, SIZE, SIZE):
        raise RuntimeError(f"a batch is {tuple(batch.shape)}")
    if not 0.2 < float(batch.std()) < 3:
        raise RuntimeError("a batch is not normalised")


def stoker(path, decode, seconds):
    import stoker

    more = {"decode": decode} if loop.DEVICE == "cuda" else {}
    with stoker.Loader(
        f"{path}/jpg-*.tar",
        batch_size=BATCH,
        shuffle=True,
        seed=0,
        transforms={"jpg": CHAIN},
        device=loop.DEVICE,
        **more,
    ) as loader:
        batches = loop.endless(lambda: (batch["jpg"] for batch in loader))
        _check(next(batches))
        answer = loop.timed(batches, _draw, seconds)
        answer.update(loop.stoker_facts(loader))
    return answer


class Normalize:
    """uint8 (B, C, H, W) on the device to normalised float32."""

    def __init__(self):
        shape = (1, 3, 1, 1)
        self.mean = 255 * torch.tensor(MEAN, device=loop.DEVICE).reshape(shape)
        self.scale = 1 / (255 * torch.tensor(STD, device=loop.DEVICE).reshape(shape))

    def __call__(self, pixels):
        return (pixels.to(torch.float32) - self.mean) * self.scale


class Pictures(data.LooseImages, Dataset):
    """Decoded, cropped, resized and flipped by Pillow: uint8 (C, H, W)."""

    def __getitem__(self, number):
        from PIL import Image

        with open(self.path(number), "rb") as file:
            picture = Image.open(file).convert("RGB")
        left, top, wide, high = draw_box(*picture.size)
        box = (left, top, left + wide, top + high)
        picture = picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
        if random.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(numpy.array(picture)).permute(2, 0, 1).contiguous()


def pil_dataloader(path, workers, seconds):
    normalize = Normalize()
    loader = DataLoader(
        Pictures(path),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        pin_memory=loop.DEVICE == "cuda",
        persistent_workers=True,
    )

    def epoch():
        for pixels in loader:
            yield normalize(pixels.to(loop.DEVICE, non_blocking=True))

    batches = loop.endless(epoch)
    _check(next(batches))
    answer = loop.timed(batches, _draw, seconds, warm=2 * workers)
    answer.update(workers=workers, threads=workers)
    return answer


def torchvision_cpu(path, seconds):
    """A thread a core; the batch after the next one is made meanwhile."""
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms.v2.functional import resized_crop

    normalize, images = Normalize(), data.LooseImages(path)

    def sample(number, place):
        pixels = decode_jpeg(read_file(images.path(number)), ImageReadMode.RGB)
        left, top, wide, high = draw_box(pixels.shape[2], pixels.shape[1])
        pixels = resized_crop(pixels, top, left, high, wide, [SIZE, SIZE], antialias=True)
        place.copy_(pixels.flip(2) if random.random() < 0.5 else pixels)

    def begin(pool, numbers):
        pinned = loop.DEVICE == "cuda"
        shape = (len(numbers), 3, SIZE, SIZE)
        batch = torch.empty(shape, dtype=torch.uint8, pin_memory=pinned)
        return batch, [pool.submit(sample, *pair) for pair in zip(numbers, batch, strict=True)]

    def epoch(pool):
        order = random.sample(range(len(images)), len(images))
        parts = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        under_way = [begin(pool, numbers) for numbers in parts[:2]]
        for number in range(len(parts)):
            batch, futures = under_way.pop(0)
            for future in futures:
                future.result()
            if number + 2 < len(parts):
                under_way.append(begin(pool, parts[number + 2]))
            yield normalize(batch.to(loop.DEVICE, non_blocking=True))

    with _one_torch_thread(), ThreadPoolExecutor(machine.cores()) as pool:
        batches = loop.endless(lambda: epoch(pool))
        _check(next(batches))
        return loop.timed(batches, _draw, seconds)


class _one_torch_thread:
    """The pool's threads are the parallel ones."""

    def __enter__(self):
        self.kept = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *error):
        torch.set_num_threads(self.kept)


def _encoded(path):
    files = data.LooseImages(path).files
    return [torch.from_numpy(numpy.fromfile(file, numpy.uint8)) for file in files]


def _lists(encoded, batch):
    """Batches of encoded images, over and over."""
    at = 0
    while True:
        yield [encoded[(at + i) % len(encoded)] for i in range(batch)]
        at += batch


def nvjpeg(path, batch, seconds):
    from torchvision.io import ImageReadMode, decode_jpeg

    if loop.DEVICE != "cuda":
        raise RuntimeError("nvJPEG needs a GPU")

    def work(images):
        pixels = decode_jpeg(images, ImageReadMode.RGB, device="cuda")
        return len(pixels), sum(image.nbytes for image in pixels)

    answer = loop.timed(_lists(_encoded(path), batch), work, seconds)
    answer.update(threads=1, batch_size=batch)
    return answer


def cpu_decode(path, seconds):
    """Whole images, each thread a part of the batch."""
    from torchvision.io import ImageReadMode, decode_jpeg

    threads = machine.cores()

    def part(images):
        return sum(decode_jpeg(image, ImageReadMode.RGB).nbytes for image in images)

    with _one_torch_thread(), ThreadPoolExecutor(threads) as pool:

        def work(images):
            return len(images), sum(pool.map(part, [images[i::threads] for i in range(threads)]))

        return loop.timed(_lists(_encoded(path), BATCH), work, seconds)
