"""`stoker show`: the sheet's pixels against Pillow's own decoding and resizing."""

import io
import json
import shutil
import subprocess

import numpy
import pytest
import tars

Image = pytest.importorskip("PIL.Image")

from small_media import bin_points, encode, picture, shard, wav  # noqa: E402

CELL = 96
CLASS_COLORS = [(0x1F, 0x6F, 0xB4), (0xE0, 0x7B, 0x1A), (0x2D, 0x9A, 0x48)]
ERROR_PAPER = (0xFD, 0xEC, 0xEA)


class Sheet:
    """What one run of the command drew."""

    def __init__(self, stoker, source, path, *arguments):
        options = ("-o", path, "--cell", CELL, *arguments)
        self.told = stoker.json("show", source, *options)
        with Image.open(path) as image:
            assert image.format == "PNG" and image.mode == "RGB"
            self.pixels = numpy.asarray(image)
        assert self.pixels.shape == (self.told["height"], self.told["width"], 3)

    def cell(self, number, side="before"):
        x, y, width, height = self.told["cells"][number][side]
        return self.pixels[y : y + height, x : x + width]

    def under(self, number):
        """The caption under a sample."""
        x, y, width, height = self.told["cells"][number]["before"]
        after = self.told["cells"][number]["after"]
        right = after[0] + after[2] if after else x + width
        return self.pixels[y + height : y + height + 30, x:right]


@pytest.fixture(scope="module", autouse=True)
def build_with_png(stoker):
    rows = {row["name"]: row["state"] for row in stoker.json("check")["rows"]}
    if rows["png"] != "good":
        pytest.skip("this build reads and writes no PNG")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """6 images of 120 x 90, of 3 classes."""
    folder = tmp_path_factory.mktemp("photos")
    samples = [
        {"png": encode(picture(n)), "cls": str(n % 3).encode(), "txt": b"words"} for n in range(6)
    ]
    shard(folder / "a.tar", samples)
    return folder


def fitted(array, cell=CELL):
    """The image as Pillow fits it into a cell, and where it lies there."""
    height, width = array.shape[:2]
    scale = min(cell / width, cell / height)
    size = round(width * scale), round(height * scale)
    made = numpy.asarray(Image.fromarray(array).resize(size, Image.Resampling.BILINEAR))
    left, top = (cell - size[0]) // 2, (cell - size[1]) // 2
    return made, (slice(top, top + size[1]), slice(left, left + size[0]))


def inner(array, margin=2):
    """Without the frame of a cell."""
    return array[margin:-margin, margin:-margin].astype(int)


def test_a_cell_shows_what_pillow_decodes_and_resizes(stoker, photos, tmp_path):
    sheet = Sheet(stoker, photos, tmp_path / "s.png")
    assert sheet.told["samples"] == 6 and sheet.told["bad"] == 0
    assert sheet.told["field"] == "png"
    for number in range(6):
        made, where = fitted(picture(number))
        assert sheet.told["cells"][number]["after"] is None
        assert abs(inner(sheet.cell(number)[where]) - inner(made)).max() <= 1


def test_a_small_image_is_enlarged_by_whole_pixels(stoker, tmp_path):
    array = numpy.random.default_rng(0).integers(0, 256, (20, 30, 3), numpy.uint8)
    shard(tmp_path / "data" / "a.tar", [{"png": encode(array)}])
    cell = Sheet(stoker, tmp_path / "data", tmp_path / "s.png").cell(0)
    large = array.repeat(3, 0).repeat(3, 1)  # 96 // 30
    assert (inner(cell[18:78, 3:93]) == inner(large)).all()


@pytest.mark.parametrize("tail", ["", " | Normalize(imagenet)", " | Normalize(0.5, 0.1)"])
@pytest.mark.parametrize("layout", ["", " | Layout('CHW')"])
def test_transformed_cells_show_pixels_again(stoker, photos, tmp_path, tail, layout):
    chain = f"png: Resize(({CELL}, {CELL})) | RandomVerticalFlip(1){tail}{layout}"
    sheet = Sheet(stoker, photos, tmp_path / "s.png", "--transform", chain)
    for number in range(6):
        image = Image.fromarray(picture(number)).resize((CELL, CELL), Image.Resampling.BILINEAR)
        expected = numpy.asarray(image)[::-1]
        assert abs(inner(sheet.cell(number, "after")) - inner(expected)).max() <= 2
        made, where = fitted(picture(number))
        assert abs(inner(sheet.cell(number)[where]) - inner(made)).max() <= 1


def test_a_class_has_its_colour(stoker, photos, tmp_path):
    sheet = Sheet(stoker, photos, tmp_path / "s.png")
    for number in range(6):
        caption = sheet.under(number).reshape(-1, 3)
        counts = [int((caption == color).all(1).sum()) for color in CLASS_COLORS]
        assert counts[number % 3] > 200 and sum(counts) == counts[number % 3]


def test_class_folders_give_their_names(stoker, tmp_path):
    for number, name in enumerate(["ant", "bee"]):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "one.png").write_bytes(encode(picture(number)))
    sheet = Sheet(stoker, tmp_path / "data", tmp_path / "s.png")
    for number in range(2):
        caption = sheet.under(number).reshape(-1, 3)
        assert (caption == CLASS_COLORS[number]).all(1).sum() > 200


def test_a_bad_sample_is_a_cell_with_words_and_not_the_end(stoker, tmp_path):
    good = encode(picture(0), "JPEG", quality=90)
    samples = [
        {"jpg": good, "cls": b"0"},
        {"jpg": good[: len(good) // 2], "cls": b"1"},
        {"jpg": b"no image at all", "cls": b"2"},
        {"jpg": good, "cls": b"0"},
    ]
    shard(tmp_path / "data" / "a.tar", samples)
    sheet = Sheet(stoker, tmp_path / "data", tmp_path / "s.png", "--transform", "jpg: Resize(64)")
    told = sheet.told
    assert told["bad"] == 2
    assert [bool(cell["error"]) for cell in told["cells"]] == [False, True, True, False]
    for number in (1, 2):
        for side in ("before", "after"):
            cell = inner(sheet.cell(number, side)).reshape(-1, 3)
            assert (cell == ERROR_PAPER).all(1).mean() > 0.5
            assert (cell != ERROR_PAPER).any(1).sum() > 100  # the words
        assert (sheet.under(number) == CLASS_COLORS[number]).all(2).sum() > 200
    assert (sheet.cell(0) == sheet.cell(3)).all()
    printed = stoker("show", tmp_path / "data", "-o", tmp_path / "s.png").stdout
    assert "sample 1: " in printed and "sample 2: " in printed and "4 samples of jpg" in printed


def test_random_transforms_follow_seed_and_epoch(stoker, photos, tmp_path):
    def after(*arguments):
        chain = ("--transform", f"png: RandomResizedCrop({CELL})")
        sheet = Sheet(stoker, photos, tmp_path / "s.png", *chain, *arguments)
        return numpy.stack([sheet.cell(n, "after") for n in range(6)])

    first = after("--seed", 3)
    assert (first == after("--seed", 3)).all()
    for others in (["--seed", 4], ["--seed", 3, "--epoch", 1]):
        changed = (first != after(*others)).any((1, 2, 3))
        assert changed.all()


def test_samples_keys_and_order_are_those_asked_for(stoker, photos, tmp_path):
    def shown(*arguments):
        sheet = Sheet(stoker, photos, tmp_path / "s.png", *arguments)
        return [(cell["sample"], cell["key"]) for cell in sheet.told["cells"]]

    assert shown("--samples", 3) == [(n, f"{n:06d}") for n in range(3)]
    assert shown("--keys", "000004,000001") == [(4, "000004"), (1, "000001")]
    for epoch in (0, 2):
        order = stoker.order(
            photos, *("--batch-size", 4, "--shuffle", "--seed", 9, "--epoch", epoch)
        )
        got = shown("--samples", 4, "--shuffle", "--seed", 9, "--epoch", epoch)
        assert [number for number, _ in got] == order[0]


def test_columns_set_the_width(stoker, photos, tmp_path):
    wide = Sheet(stoker, photos, tmp_path / "s.png", "--columns", 6).told
    tall = Sheet(stoker, photos, tmp_path / "s.png", "--columns", 1).told
    assert len({cell["before"][1] for cell in wide["cells"]}) == 1
    assert len({cell["before"][0] for cell in tall["cells"]}) == 1
    assert wide["width"] > 6 * CELL and tall["height"] > 6 * CELL


def test_without_o_it_writes_sheet_png_and_says_so(stoker, photos, tmp_path):
    done = stoker("show", photos, cwd=tmp_path)
    assert done.stdout.startswith("sheet.png: 6 samples of png, ") and done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.png"]


def test_sound_is_a_wave_and_its_spectrum_a_map(stoker, tmp_path):
    seconds = numpy.arange(8000) / 8000
    low, high = (numpy.sin(2 * numpy.pi * hertz * seconds) * 0.5 for hertz in (200, 3000))
    silent_end = numpy.where(seconds < 0.5, low, 0)
    shard(tmp_path / "data" / "a.tar", [{"wav": wav(s)} for s in (low, high, silent_end)])
    chain = ("--transform", "wav: LogMel(n_mels=32)")
    sheet = Sheet(stoker, tmp_path / "data", tmp_path / "s.png", *chain)
    bright = [inner(sheet.cell(n, "after"), 4)[:, :40].sum(2).mean(1).argmax() for n in range(2)]
    assert bright[0] > CELL * 0.7 and bright[1] < CELL * 0.3  # low ones are at the bottom
    ink = (inner(sheet.cell(2), 6).sum(2) < 600).sum(0)  # of each column
    assert ink[5:35].min() > 30 and ink[50:].max() <= 3


def test_points_are_seen_from_above(stoker, tmp_path):
    corners = [(0, 0, 0, 1), (4, 0, 1, 1), (4, 4, 2, 1), (2, 2, 2, 1)]
    shard(tmp_path / "data" / "a.tar", [{"bin": bin_points(corners)}])
    fields = ("--fields", "bin=points")
    light = inner(Sheet(stoker, tmp_path / "data", tmp_path / "s.png", *fields).cell(0)).sum(2)
    quarters = [
        light[y, x].max() for y in (slice(30), slice(60, 99)) for x in (slice(30), slice(60, 99))
    ]
    night = light[CELL // 4, CELL // 2]
    assert quarters[0] < night + 40  # nothing lies at (0, 4)
    assert min(quarters[1:]) > night + 80


def test_arrays_are_images_lines_or_maps(stoker, tmp_path):
    arrays = [picture(1, 48, 48), numpy.arange(50.0), numpy.eye(40), numpy.float32(7)]
    shard(tmp_path / "data" / "a.tar", [{"npy": tars.npy(array)} for array in arrays])
    sheet = Sheet(stoker, tmp_path / "data", tmp_path / "s.png")
    assert (inner(sheet.cell(0)) == inner(picture(1, 48, 48).repeat(2, 0).repeat(2, 1))).all()
    diagonal = numpy.arange(12, CELL - 12)
    dark = sheet.cell(1).astype(int).sum(2) < 700
    assert dark[CELL - 1 - diagonal, diagonal].mean() > 0.7 and dark[20:40, 20:40].sum() == 0
    brightness = sheet.cell(2).astype(int).sum(2)
    assert brightness[diagonal, diagonal].mean() > brightness.mean() + 50
    assert (sheet.cell(3).astype(int).sum(2) < 300).sum() > 10  # its digits


def test_a_video_is_a_strip_of_frames(stoker, tmp_path):
    rows = {row["name"]: row["state"] for row in stoker.json("check")["rows"]}
    if rows.get("video") != "good" or not shutil.which("ffmpeg"):
        pytest.skip("videos cannot be made or decoded here")
    (tmp_path / "data").mkdir()
    source = (
        "color=red:size=64x64:rate=10:duration=1[a];color=blue:size=64x64:rate=10:duration=1[b]"
    )
    command = ["ffmpeg", "-loglevel", "error", "-filter_complex", f"{source};[a][b]concat"]
    command += ["-c:v", "mpeg4", "-q:v", "2", str(tmp_path / "data" / "a.mp4")]
    subprocess.run(command, check=True, timeout=60)
    chain = ("--transform", "mp4: DecodeVideo(frames=20)")
    cell = Sheet(stoker, tmp_path / "data", tmp_path / "s.png", *chain).cell(0, "after")
    quarter = CELL // 4
    first, last = cell[quarter, quarter].astype(int), cell[-quarter, -quarter].astype(int)
    assert first[0] > 150 > 80 > first[2] and last[2] > 150 > 80 > last[0]


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        (["--transform", "png: Reszie(3)"], 2, 'did you mean "Resize"'),
        (["--transform", "png: LogMel"], 2, "LogMel"),
        (["--transform", "Resize(3)"], 2, "needs a field and a chain"),
        (["--transform", "jpg: Resize(3)"], 1, 'no field "jpg"'),
        (["--transform", "png: Resize(3)", "--transform", "txt: Resize(3)"], 2, "may come once"),
        (["--transform", "png: Resize(3)", "--field", "txt"], 2, "--field shows txt"),
        (["--field", "cls"], 2, "holds no tensor"),
        (["--keys", "nobody"], 1, "nobody"),
        (["--keys", "000001", "--shuffle"], 2, "--shuffle does not"),
        (["--samples", "0"], 2, "--samples"),
        (["--cell", "8"], 2, "32 to 2048"),
        (["--cell", "2048", "--samples", "6", "--columns", "1000"], 2, "columns"),
        (["-o", "missing/folder/x.png"], 1, "cannot write"),
    ],
)
def test_bad_usage_has_words_and_writes_nothing(stoker, photos, tmp_path, arguments, status, words):
    done = stoker("show", photos, *arguments, status=status, cwd=tmp_path)
    assert words in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_set_of_nothing_to_draw_says_what_can_be(stoker, tmp_path):
    shard(tmp_path / "words" / "a.tar", [{"txt": b"only words"}])
    shard(tmp_path / "bytes" / "a.tar", [{"bin": b"12345678"}])
    done = stoker("show", tmp_path / "words", status=2, cwd=tmp_path)
    assert "can be drawn" in done.stderr and "points" in done.stderr
    done = stoker("show", tmp_path / "bytes", status=2, cwd=tmp_path)
    assert '"bin" holds no tensor' in done.stderr and "bin=image" in done.stderr


def test_windows_of_a_series_are_lines(stoker, tmp_path):
    series = tmp_path / "series"
    series.mkdir()
    numpy.sin(numpy.arange(300)).astype(numpy.float32).tofile(series / "all_features.mmap")
    entity = {"name": "one", "start": 0, "end": 100}
    told = {"features": ["a", "b", "c"], "entities": [entity], "sequence": {"window": 20}}
    (series / "metadata.json").write_text(json.dumps(told))
    sheet = Sheet(stoker, series, tmp_path / "s.png", "--samples", 2)
    assert sheet.told["bad"] == 0 and sheet.told["field"] == "x"
    cell = inner(sheet.cell(0)).reshape(-1, 3)
    assert (cell == 255).all(1).mean() > 0.3  # lines on paper, and not a map
    for color in CLASS_COLORS:  # a line a column
        assert (cell == color).all(1).sum() > 10


def test_json_is_one_line_that_names_the_file(stoker, photos, tmp_path):
    path = tmp_path / "s.png"
    done = stoker("show", photos, "-o", path, "--json", "--samples", 1)
    told = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1 and told["out"] == str(path)
    assert Image.open(io.BytesIO(path.read_bytes())).size == (told["width"], told["height"])
