"""The sides of the `jpeg` benchmark, each set up as its own documentation advises.

    python -m bench.jpeg_sides SIDE DATA --variant WORD --threads N --seconds S

A batch is up to 64 pictures of 224 x 224, shuffled, cropped at random (0.08 to 1 of the area, 3/4
to 4/3 wide), resized and flipped by chance, uint8 (B, 224, 224, 3); where a side does other work,
its row says so. bench/media_loop.py consumes and measures.
"""

import math
import os
import random
import warnings

import numpy

from bench import media_data, media_loop

BATCH, SIZE = 64, 224
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)
CROP, FLIP = f"RandomResizedCrop({SIZE})", "RandomHorizontalFlip"
warnings.filterwarnings("ignore")  # read-only arrays, worker counts: peers are talkative


# --- Stoker --------------------------------------------------------------------------------------


def stoker(data, options):
    return _stoker_jpg(data, options, f"{CROP} | {FLIP}")


def f32(data, options):
    return _stoker_jpg(data, options, f"{CROP} | {FLIP} | Normalize(imagenet) | Layout(CHW)")


def resize(data, options):
    return _stoker_jpg(data, options, f"Resize(({SIZE}, {SIZE}))")


def stoker_fast(data, options):
    return _stoker_jpg(data, options, f"DecodeImage(fast=True) | {CROP} | {FLIP}")


def large(data, options):
    return _stoker_jpg(data, options, f"DecodeImage(fast=True) | {CROP}")


def large_exact(data, options):
    return _stoker_jpg(data, options, CROP)


def raw(data, options):
    import stoker

    dataset = stoker.open(str(data / "pixels.npy"))
    (field,) = dataset.fields
    return media_loop.stoker_side(dataset, field, BATCH, options, f"{CROP} | {FLIP}")


def _stoker_jpg(data, options, chain):
    import stoker

    dataset = stoker.open(f"{data}/jpg-*.tar")
    return media_loop.stoker_side(dataset, "jpg", BATCH, options, chain)


# --- a crop as torchvision draws it --------------------------------------------------------------


def draw_box(width, height):
    """left, top, width and height of a random part."""
    for _ in range(10):
        area = width * height * random.uniform(*AREA)
        aspect = math.exp(random.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
        wide, high = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < wide <= width and 0 < high <= height:
            return random.randint(0, width - wide), random.randint(0, height - high), wide, high
    wide, high = min(width, round(height * ASPECT[1])), min(height, round(width / ASPECT[0]))
    return (width - wide) // 2, (height - high) // 2, wide, high


# --- Pillow and PyTorch's DataLoader -------------------------------------------------------------


class Pictures:
    """A torch map-style dataset over files, as torchvision's ImageFolder reads them."""

    def __init__(self, data):
        self.files, self.labels = media_data.files_of(data, "jpg")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        import torch
        from PIL import Image

        with open(self.files[number], "rb") as file:
            picture = Image.open(file).convert("RGB")
        left, top, wide, high = draw_box(*picture.size)
        box = (left, top, left + wide, top + high)
        picture = picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
        if random.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(numpy.array(picture)), self.labels[number]


def pil_dataloader(data, options):
    return media_loop.dataloader_side(Pictures(data), BATCH, options)


# --- OpenCV in a pool of threads -----------------------------------------------------------------


def opencv_threads(data, options):
    """Each sample straight into its place of the batch."""
    import cv2

    cv2.setNumThreads(1)  # the pool's threads are the parallel ones
    files, _ = media_data.files_of(data, "jpg")

    def sample(file, place):
        picture = cv2.imdecode(numpy.fromfile(file, numpy.uint8), cv2.IMREAD_COLOR_RGB)
        left, top, wide, high = draw_box(picture.shape[1], picture.shape[0])
        part = picture[top : top + high, left : left + wide]
        if random.random() < 0.5:
            cv2.flip(cv2.resize(part, (SIZE, SIZE)), 1, dst=place)
        else:
            cv2.resize(part, (SIZE, SIZE), dst=place)

    def empty(count):
        return numpy.zeros((count, SIZE, SIZE, 3), numpy.uint8)

    return media_loop.pool_side(files, BATCH, options, empty, sample)


# --- DALI ----------------------------------------------------------------------------------------


def dali_cpu(data, options):
    """The pipeline of its ResNet example, without its normalisation."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    files, labels = media_data.files_of(data, "jpg")
    tars = sorted(map(str, data.glob("jpg-*.tar")))

    def reader():
        if options.variant == "file":
            return fn.readers.file(
                files=files, labels=labels, shuffle_after_epoch=True, name="reader"
            )
        return fn.readers.webdataset(
            paths=tars,
            index_paths=[f"{data}/dali/{os.path.basename(tar)}.idx" for tar in tars],
            ext=["jpg", "cls"],
            random_shuffle=True,
            initial_fill=1024,
            name="reader",
            missing_component_behavior="error",
        )

    @pipeline_def(batch_size=BATCH, num_threads=options.threads, device_id=None)
    def pipeline():
        encoded, _ = reader()
        pictures = fn.decoders.image_random_crop(
            encoded,
            device="cpu",
            output_type=types.RGB,
            random_area=list(AREA),
            random_aspect_ratio=list(ASPECT),
            num_attempts=10,
        )
        pictures = fn.resize(
            pictures, size=[SIZE, SIZE], interp_type=types.INTERP_TRIANGULAR, device="cpu"
        )
        return fn.flip(pictures, horizontal=fn.random.coin_flip())

    made = pipeline()
    made.build()
    loader = DALIGenericIterator(
        made,
        ["jpg"],
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    return lambda: (batch["jpg"] for (batch,) in loader), None


# --- FFCV ----------------------------------------------------------------------------------------


def ffcv_jpg(data, options):
    return _ffcv(data / "jpg.beton", options)


def ffcv_raw(data, options):
    return _ffcv(data / "raw.beton", options)


def _ffcv(file, options):
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip, ToTensor

    decoder = RandomResizedCropRGBImageDecoder((SIZE, SIZE), scale=AREA, ratio=ASPECT)
    loader = Loader(
        str(file),
        batch_size=BATCH,
        num_workers=options.threads,
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=False,
        pipelines={
            "image": [decoder, RandomHorizontalFlip(), ToTensor()],
            "label": [IntDecoder(), ToTensor()],
        },
    )
    return lambda: (pictures for pictures, labels in loader), None


# --- SPDL ----------------------------------------------------------------------------------------


def spdl(data, options):
    """`batch`: a batch a task, as in its example; `sample`: a picture a task, cropped at random."""
    import spdl.io
    import spdl.pipeline
    import torch

    files, _ = media_data.files_of(data, "jpg")
    fixed = spdl.io.get_video_filter_desc(
        scale_width=256, scale_height=256, crop_width=SIZE, crop_height=SIZE, pix_fmt="rgb24"
    )

    def decode(file):
        packets = spdl.io.demux_image(file)
        left, top, wide, high = draw_box(packets.width, packets.height)
        flip = ",hflip" if random.random() < 0.5 else ""
        words = f"crop={wide}:{high}:{left}:{top},scale={SIZE}:{SIZE}:flags=bilinear{flip}"
        return spdl.io.decode_packets(packets, filter_desc=f"{words},format=pix_fmts=rgb24")

    def load(names):
        return spdl.io.load_image_batch(names, width=None, height=None, filter_desc=fixed)

    def finish(buffer):
        return torch.from_numpy(spdl.io.to_numpy(buffer))

    def epoch():
        builder = spdl.pipeline.PipelineBuilder().add_source(random.sample(files, len(files)))
        if options.variant == "batch":
            builder = builder.aggregate(BATCH).pipe(load, concurrency=options.threads)
        else:
            builder = builder.pipe(decode, concurrency=options.threads).aggregate(BATCH)
            builder = builder.pipe(spdl.io.convert_frames)
        pipeline = builder.pipe(finish).add_sink(3).build(num_threads=options.threads)
        with pipeline.auto_stop():
            yield from pipeline

    return epoch, None


STOKER = (stoker, f32, resize, stoker_fast, large, large_exact, raw)
PEERS = (pil_dataloader, opencv_threads, dali_cpu, ffcv_jpg, ffcv_raw, spdl)
SIDES = {side.__name__: side for side in (*STOKER, *PEERS)}


def expected(side, facts):
    return ("float32", (3, SIZE, SIZE)) if side == "f32" else ("uint8", (SIZE, SIZE, 3))


def bytes_in(side):
    return "pixel_bytes" if side in ("raw", "ffcv_raw") else "bytes"


if __name__ == "__main__":
    media_loop.main(SIDES, expected, bytes_in)
