"""The sides of the `audio` benchmark, each set up as its own documentation advises.

    python -m bench.audio_sides SIDE DATA --variant WORD --threads N --seconds S

A batch is up to 64 clips of a second, shuffled, float32 (B, 1, 16000). bench/media_loop.py consumes
and measures.
"""

import random
import warnings

import numpy

from bench import media_data, media_loop

BATCH, FRAMES = 64, media_data.RATE
warnings.filterwarnings("ignore")


def stoker(data, options):
    return _stoker(data, "wav", options)


def flac(data, options):
    return _stoker(data, "flac", options)


def _stoker(data, field, options):
    import stoker

    dataset = stoker.open(f"{data}/{field}-*.tar")
    chain = "DecodeAudio(seconds=1, mono=True)"
    return media_loop.stoker_side(dataset, field, BATCH, options, chain)


class Clips:
    """A torch map-style dataset over files: soundfile.read, channels first."""

    def __init__(self, data, field):
        self.files, self.labels = media_data.files_of(data, field)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        import soundfile
        import torch

        values, _ = soundfile.read(self.files[number], dtype="float32", always_2d=True)
        return torch.from_numpy(values.T), self.labels[number]


def soundfile_dataloader(data, options):
    return media_loop.dataloader_side(Clips(data, "wav"), BATCH, options)


def flac_dataloader(data, options):
    return media_loop.dataloader_side(Clips(data, "flac"), BATCH, options)


def soundfile_threads(data, options):
    """The same calls from a pool of threads: no worker processes."""
    import soundfile

    files, _ = media_data.files_of(data, "wav")

    def sample(file, place):
        place[0] = soundfile.read(file, dtype="float32")[0]

    def empty(count):
        return numpy.empty((count, 1, FRAMES), numpy.float32)

    return media_loop.pool_side(files, BATCH, options, empty, sample)


def spdl(data, options):
    """`wav`: load_wav, which gives the stored integers; `audio`: load_audio, by FFmpeg."""
    import spdl.io
    import spdl.pipeline
    import torch

    files, _ = media_data.files_of(data, "wav")

    def read(file):
        with open(file, "rb") as opened:
            return numpy.asarray(spdl.io.load_wav(opened.read()))

    def decode(file):
        return spdl.io.to_numpy(spdl.io.load_audio(file))  # (time, channel)

    def finish(clips):
        batch = numpy.empty((len(clips), 1, FRAMES), numpy.float32)
        for place, clip in zip(batch, clips, strict=True):
            place[:] = clip.reshape(1, -1)
        if clips[0].dtype == numpy.int16:
            batch *= 1 / 32768
        return torch.from_numpy(batch)

    def epoch():
        pipeline = (
            spdl.pipeline.PipelineBuilder()
            .add_source(random.sample(files, len(files)))
            .pipe(read if options.variant == "wav" else decode, concurrency=options.threads)
            .aggregate(BATCH)
            .pipe(finish)
            .add_sink(3)
            .build(num_threads=options.threads)
        )
        with pipeline.auto_stop():
            yield from pipeline

    return epoch, None


STOKER = (stoker, flac)
PEERS = (soundfile_dataloader, flac_dataloader, soundfile_threads, spdl)
SIDES = {side.__name__: side for side in (*STOKER, *PEERS)}


def expected(side, facts):
    return "float32", (1, FRAMES)


def bytes_in(side):
    return "flac_bytes" if side.startswith("flac") else "bytes"


if __name__ == "__main__":
    media_loop.main(SIDES, expected, bytes_in)
