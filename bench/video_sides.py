"""The sides of the `video` benchmark, each set up as its own documentation advises.

    python -m bench.video_sides SIDE DATA --variant WORD --threads N --seconds S

A batch is up to 8 clips, shuffled: 16 frames of each video, every second one, from its middle,
uint8 (B, 16, 240, 320, 3). As many threads decode on every side: each takes a video of its own and
decodes it with one thread. Peers are called from a pool of threads (`threads`) or from a
DataLoader's worker processes (`workers`), whichever is faster. bench/media_loop.py consumes and
measures.
"""

import warnings

import numpy

from bench import media_data, media_loop

BATCH, FRAMES, STRIDE = 8, 16, 2
WANTED = media_data.middle(FRAMES, STRIDE)
FIRST = WANTED[0]
warnings.filterwarnings("ignore")


def stoker(data, options):
    import stoker

    dataset = stoker.open(f"{data}/mp4-*.tar")
    chain = f'DecodeVideo({FRAMES}, {STRIDE}, start="center")'
    return media_loop.stoker_side(dataset, "mp4", BATCH, options, chain)


class Videos:
    """A torch map-style dataset over files; decode(file) gives (16, 240, 320, 3)."""

    def __init__(self, data, decode):
        self.files, self.labels = media_data.files_of(data, "mp4")
        self.decode = decode

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        return self.decode(self.files[number]), self.labels[number]


def _peer(data, options, decode):
    if options.variant == "workers":
        options.variant = str(options.threads)
        return media_loop.dataloader_side(Videos(data, decode), BATCH, options)
    files, _ = media_data.files_of(data, "mp4")
    shape = decode(files[0]).shape

    def sample(file, place):
        place[:] = decode(file)

    def empty(count):
        return numpy.empty((count, *shape), numpy.uint8)

    return media_loop.pool_side(files, BATCH, options, empty, sample)


def pyav(data, options):
    return _peer(data, options, pyav_clip)


def pyav_clip(file):
    """Seeks to the keyframe before the first frame, then takes frames by their times."""
    import av
    from av.video.reformatter import VideoReformatter

    converter, frames = VideoReformatter(), []
    with av.open(file) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        step = 1 / (stream.average_rate * stream.time_base)  # ticks a frame
        start = stream.start_time or 0
        container.seek(start + int(FIRST * step), stream=stream, backward=True)
        for frame in container.decode(stream):
            number = round((frame.pts - start) / step)
            if number >= FIRST and (number - FIRST) % STRIDE == 0:
                frames.append(converter.reformat(frame, format="rgb24").to_ndarray())
            if len(frames) == FRAMES:
                break
    return numpy.stack(frames)


def decord(data, options):
    return _peer(data, options, decord_clip)


def decord_clip(file):
    import decord

    reader = decord.VideoReader(file, ctx=decord.cpu(0), num_threads=1)
    return reader.get_batch(WANTED).asnumpy()


def torchcodec(data, options):
    return _peer(data, options, torchcodec_clip)


def torchcodec_clip(file):
    """One thread is its default; approximate seeking is what its pages advise for clips."""
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(
        file, dimension_order="NHWC", num_ffmpeg_threads=1, seek_mode="approximate"
    )
    return decoder.get_frames_at(indices=WANTED).data.numpy()


SIDES = {side.__name__: side for side in (stoker, pyav, decord, torchcodec)}


def expected(side, facts):
    return "uint8", (FRAMES, facts["height"], facts["width"], 3)


if __name__ == "__main__":
    media_loop.main(SIDES, expected)
