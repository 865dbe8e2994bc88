"""Writes the samples of `tensors` in the form a peer wants, with the peer's own tools.

python -m bench.convert mosaic|litdata|dali DATA
"""

import glob
import os
import shutil
import sys

from bench.loaders import LooseFiles, import_streaming


def mosaic(data):
    streaming = import_streaming()
    samples = LooseFiles(f"{data}/loose")
    shape = ",".join(map(str, samples[0][0].shape))
    columns = {"x": f"ndarray:float16:{shape}", "y": "int"}
    with streaming.MDSWriter(out=f"{data}/mds.part", columns=columns, size_limit="128mb") as out:
        for number in range(len(samples)):
            array, label = samples[number]
            out.write({"x": array, "y": label})
    os.rename(f"{data}/mds.part", f"{data}/mds")


class LitSample:
    """Picklable, as litdata's own processes want it."""

    def __init__(self, data):
        self.samples = LooseFiles(f"{data}/loose")

    def __call__(self, number):
        import torch

        array, label = self.samples[number]
        return {"x": torch.from_numpy(array), "y": label}


def litdata(data):
    import litdata as lit

    count = len(LooseFiles(f"{data}/loose"))
    lit.optimize(
        fn=LitSample(data),
        inputs=list(range(count)),
        output_dir=f"{data}/litdata.part",
        chunk_bytes="64MB",
        num_workers=1,
    )
    os.rename(f"{data}/litdata.part", f"{data}/litdata")


def dali(data):
    from wds2idx import IndexCreator

    os.makedirs(f"{data}/dali.part")
    for shard in sorted(glob.glob(f"{data}/shard-*.tar")):
        index = f"{data}/dali.part/{os.path.basename(shard)}.idx"
        with IndexCreator(shard, index, verbose=False) as creator:
            creator.create_index()
    os.rename(f"{data}/dali.part", f"{data}/dali")


FORMS = {"mosaic": "mds", "litdata": "litdata", "dali": "dali"}

if __name__ == "__main__":
    peer, where = sys.argv[1:]
    shutil.rmtree(f"{where}/{FORMS[peer]}.part", ignore_errors=True)
    {"mosaic": mosaic, "litdata": litdata, "dali": dali}[peer](where)
