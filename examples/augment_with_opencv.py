"""OpenCV behind Stoker: the chain decodes and crops in C, your own function does what is left.

python examples/augment_with_opencv.py
python examples/augment_with_opencv.py --data 'train-{0000..0099}.tar' --field jpg

The function is given to the loader as sample_map=. It sees one sample after the other, in threads
(OpenCV lets go of Python's lock); its second argument is a random generator that depends on seed,
epoch and sample alone, so that a run can be repeated, on any number of threads and after a resume.
"""

import argparse
import io
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy
import stoker

try:
    import cv2
except ImportError as error:
    words = f"skipped, OpenCV is missing: {error} (pip install opencv-python-headless)"
    print(words, file=sys.stderr)
    sys.exit(0)


def make_images(folder, count=64):
    """Small PNG images of waves in a tar shard; the class is their direction."""
    rng = numpy.random.default_rng(0)
    y, x = numpy.mgrid[0:96, 0:128]
    path = Path(folder) / "images.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(count):
            along = (x, y)[number % 2]
            wave = 127 + 80 * numpy.sin(along * rng.uniform(0.1, 0.3) + rng.uniform(0, 6))
            image = numpy.clip(wave[..., None] + rng.normal(0, 12, (96, 128, 3)), 0, 255)
            png = cv2.imencode(".png", image.astype(numpy.uint8))[1].tobytes()
            for name, data in (("png", png), ("cls", str(number % 2).encode())):
                member = tarfile.TarInfo(f"{number:04d}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


class Shear:
    """A random shear, and edges as a fourth channel."""

    def __init__(self, field):
        self.field = field

    def __call__(self, sample, rng):
        image = numpy.ascontiguousarray(sample[self.field])
        height, width = image.shape[:2]
        slant = rng.uniform(-0.2, 0.2)
        matrix = numpy.float32([[1, slant, -slant * height / 2], [0, 1, 0]])
        image = cv2.warpAffine(image, matrix, (width, height), borderMode=cv2.BORDER_REFLECT)
        edges = cv2.Canny(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), 80, 160)
        return {"image": numpy.dstack([image, edges]), "label": sample["cls"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="shards with images and cls; default: made on the spot")
    parser.add_argument("--field", default="png")
    parser.add_argument("--batch-size", type=int, default=16)
    arguments = parser.parse_args()
    cv2.setNumThreads(0)  # the loader's threads are enough
    with tempfile.TemporaryDirectory() as folder:
        loader = stoker.Loader(
            arguments.data or make_images(folder),
            arguments.batch_size,
            shuffle=True,
            as_="numpy",
            transforms={arguments.field: [stoker.RandomResizedCrop(64, scale=(0.5, 1))]},
            sample_map=Shear(arguments.field),
        )
        for batch in loader:
            print(batch.step, batch["image"].shape, batch["image"].dtype, batch["label"].tolist())
        loader.close()


if __name__ == "__main__":
    main()
