"""Albumentations behind Stoker: the chain decodes and crops in C, Albumentations does what is left.

python examples/augment_with_albumentations.py
python examples/augment_with_albumentations.py --data 'train-{0000..0099}.tar' --field jpg

Your own callable is given to the loader as sample_map=. It sees one sample after the other, in
threads; its second argument is a random generator that depends on seed, epoch and sample alone, so
that a run can be repeated, on any number of threads and after a resume.
"""

import argparse
import sys
import tempfile

import numpy
import stoker

try:
    import albumentations
except ImportError as error:
    words = f"skipped, Albumentations is missing: {error} (pip install albumentations)"
    print(words, file=sys.stderr)
    sys.exit(0)

from augment_with_opencv import make_images


class Augment:
    """An Albumentations pipeline, drawn from the generator of the sample."""

    def __init__(self, field):
        self.field = field

    def __call__(self, sample, rng):
        # A pipeline a call: its random state would be shared by the threads otherwise.
        pipeline = albumentations.Compose(
            [
                albumentations.RandomBrightnessContrast(p=1.0),
                albumentations.GaussNoise(p=0.5),
                albumentations.CoarseDropout(p=0.5),
            ],
            seed=int(rng.integers(1 << 31)),
        )
        image = numpy.ascontiguousarray(sample[self.field])
        return {"image": pipeline(image=image)["image"], "label": sample["cls"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="shards with images and cls; default: made on the spot")
    parser.add_argument("--field", default="png")
    parser.add_argument("--batch-size", type=int, default=16)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loader = stoker.Loader(
            arguments.data or make_images(folder),
            arguments.batch_size,
            shuffle=True,
            as_="numpy",
            transforms={arguments.field: [stoker.RandomResizedCrop(64, scale=(0.5, 1))]},
            sample_map=Augment(arguments.field),
        )
        for batch in loader:
            print(batch.step, batch["image"].shape, batch["image"].dtype, batch["label"].tolist())
        loader.close()


if __name__ == "__main__":
    main()
