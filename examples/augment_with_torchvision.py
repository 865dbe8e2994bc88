"""torchvision v2 behind Stoker: the chain decodes and crops in C, torchvision does what is left.

python examples/augment_with_torchvision.py
python examples/augment_with_torchvision.py --data 'train-{0000..0099}.tar' --field jpg

torchvision's transforms are run on samples, as sample_map=: on a batch they would draw one crop for
all of its images. They take their random numbers from torch's one generator: it is seeded from the
sample's own, and one thread runs them, so that a run can be repeated and resumed.
"""

import argparse
import sys
import tempfile

import stoker
import torch

try:
    from torchvision.transforms import v2
except ImportError as error:
    words = f"skipped, torchvision is missing: {error} (pip install torchvision)"
    print(words, file=sys.stderr)
    sys.exit(0)

from augment_with_opencv import make_images


class Augment:
    """A torchvision pipeline on (C, H, W), seeded by the sample."""

    def __init__(self, field):
        self.field = field
        self.pipeline = v2.Compose(
            [v2.RandomPerspective(p=0.5), v2.RandomPosterize(4), v2.ToDtype(torch.float32, True)]
        )

    def __call__(self, sample, rng):
        torch.manual_seed(int(rng.integers(1 << 62)))
        return {"image": self.pipeline(sample[self.field]), "label": sample["cls"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="shards with images and cls; default: made on the spot")
    parser.add_argument("--field", default="png")
    parser.add_argument("--batch-size", type=int, default=16)
    arguments = parser.parse_args()
    chain = [stoker.RandomResizedCrop(64, scale=(0.5, 1)), stoker.Layout("CHW")]
    with tempfile.TemporaryDirectory() as folder:
        loader = stoker.Loader(
            arguments.data or make_images(folder),
            arguments.batch_size,
            shuffle=True,
            as_="torch",
            transforms={arguments.field: chain},
            sample_map=Augment(arguments.field),
            map_threads=1,
        )
        for batch in loader:
            print(batch.step, tuple(batch["image"].shape), batch["label"].tolist())
        loader.close()


if __name__ == "__main__":
    main()
