"""The evidence: when, why, in which function the GPU waited, and what the machine did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _colours as colours
from . import _format as form
from . import _run_charts as charts
from ._document import Block, Code, Heading, Paragraph, Section, Table, Words
from ._run import Run


def _each(runs: list[Run], make: Callable[[Run], list[Block]]) -> list[Block]:
    """The blocks of all runs, each below its name where there are several."""
    blocks: list[Block] = []
    for run in runs:
        made = make(run)
        if made and len(runs) > 1:
            blocks.append(Heading([run.label]))
        blocks += made
    return blocks


def _section(id: str, title: str, blocks: list[Block]) -> Section | None:
    return Section(id, title, blocks) if blocks else None


def timeline(runs: list[Run]) -> Section | None:
    """An excerpt, and the longest gaps of the whole run."""
    return _section("timeline", "Timeline", [one for run in runs for one in _timeline_of(run)])


def _timeline_of(run: Run) -> list[Block]:
    blocks: list[Block] = []
    chart = charts.timeline(run)
    if chart is not None:
        start = run.get("timeline/start_s", form.seconds)
        end = run.made("excerpt_end", charts.excerpt_end(run), form.seconds)
        words: Words = [
            run.lead("From "),
            start,
            " to ",
            end,
            " of the run. Coloured bands are stalls: ",
        ]
        blocks += [
            Paragraph([*words, f"there the {run.who} wait{'' if run.who.endswith('s') else 's'}."]),
            chart,
        ]
    gaps = run["gaps"]
    if gaps["longest"]:
        words = [run.get("gaps/count", form.count), " gaps in all; the longest:"]
        blocks += [Paragraph(words), _gaps(run)]
    return blocks


def _gaps(run: Run) -> Table:
    places = sorted(
        range(len(run["gaps"]["longest"])),
        key=lambda i: -(run["gaps"]["longest"][i]["seconds"] or 0),
    )[:5]
    rows: list[list[Words]] = []
    chips = []
    for i in places:
        gap = run["gaps"]["longest"][i]
        cause = gap["cause"] or "other"
        row: list[Words] = [
            [colours.words_of(cause)],
            [run.get(f"gaps/longest/{i}/start_s", form.seconds)],
            [run.get(f"gaps/longest/{i}/seconds", form.seconds)],
        ]
        if len(run.ranks) > 1:
            row.append([run.get(f"gaps/longest/{i}/rank", form.plain)])
        rows.append(row)
        chips.append(colours.of_cause(cause))
    head = ["waited for", "at", "for", "rank"][: 4 if len(run.ranks) > 1 else 3]
    return Table(head, rows, "lrrr"[: len(head)], chips)


def busy(runs: list[Run]) -> Section | None:
    found = [charts.busy_lines(run) for run in runs]
    return _section("busy", "Busy over time", [chart for chart in found if chart is not None])


# --- causes and functions -------------------------------------------------------------------------


def causes(runs: list[Run]) -> Section | None:
    """One bar a run, and its table."""
    chart = charts.causes_bar(runs)
    if chart is None:
        return None
    blocks: list[Block] = [chart, *_each(runs, lambda run: [_cause_table(run)])]
    return Section("causes", "What it waited for", blocks)


def _cause_table(run: Run) -> Table:
    rows: list[list[Words]] = []
    chips = []
    for i, cause in enumerate(run["causes"]):
        if not cause["seconds"]:
            continue
        rows.append(
            [
                [cause["words"] or colours.words_of(cause["cause"] or "other")],
                [run.get(f"causes/{i}/share", form.share)],
                [run.get(f"causes/{i}/seconds", form.seconds)],
                _functions(run, i, cause["functions"]),
            ]
        )
        chips.append(colours.of_cause(cause["cause"] or "other"))
    return Table(["cause", "of idle", "time", "in"], rows, "lrrl", chips)


def _functions(run: Run, place: int, functions: list[dict[str, Any]]) -> Words:
    """Up to two functions with file, line and seconds."""
    words: list[Any] = []
    for j, function in enumerate(functions[:2]):
        if words:
            words.append("; ")
        words += [Code(function["function"] or "?"), f" {_place(function)} "]
        words.append(run.get(f"causes/{place}/functions/{j}/seconds", form.seconds))
    return words


def _place(node: dict[str, Any]) -> str:
    """The last two parts of the path are enough to find it."""
    name = "/".join((node["file"] or "").split("/")[-2:])
    return f"{name}:{node['line']:.0f}" if name and node["line"] else name


def functions(runs: list[Run]) -> Section | None:
    blocks = [one for run in runs for one in _functions_of(run)]
    how = Paragraph(["Functions stand below those that called them, as wide as they took long."])
    return _section("functions", "In which functions", [how, *blocks] if blocks else [])


def _functions_of(run: Run) -> list[Block]:
    found: list[Block] = []
    words: list[Any] = [run.lead("Seen: ")]
    for which, title in (("main", "main thread"), ("workers", "workers of the loaders")):
        chart = charts.icicle(run, which, title)
        if chart is not None:
            words += [", " if found else "", run.get(f"functions/{which}/seconds", form.seconds)]
            words += [f" of the {title}"]
            found.append(chart)
    return [Paragraph([*words, "."]), *found] if found else []


# --- the machine meanwhile ------------------------------------------------------------------------


def host(runs: list[Run]) -> Section | None:
    title = "Throughput, memory, input and output, CPU"
    blocks: list[Block] = []
    for run in runs:
        if run["cpu"]["own"] is not None:
            words = [run.lead("It used "), run.get("cpu/own", form.share), " of its CPUs, other "]
            words += ["programs ", run.get("cpu/foreign", form.share), "."]
            blocks.append(Paragraph(words))
        blocks += _machine_io_of(run)
    makers = (charts.samples_lines, charts.memory_lines, charts.io_lines, charts.cpu_lines)
    return _section("host", title, blocks + _beside(runs, makers))


def _machine_io_of(run: Run) -> list[Block]:
    if all(value is None for value in run["machine_io"].values()):
        return []
    words: list[Any] = [run.lead("The whole machine read ")]
    words += [run.get("machine_io/disk_read_bytes", form.size), " from disks and wrote "]
    words += [run.get("machine_io/disk_written_bytes", form.size), ", received "]
    words += [run.get("machine_io/network_received_bytes", form.size), " by network and sent "]
    words += [run.get("machine_io/network_sent_bytes", form.size), "."]
    return [Paragraph(words)]


def _beside(runs: list[Run], makers: Iterable[Callable[[Run], Any]]) -> list[Block]:
    """Charts of one kind follow each other, so that runs can be compared."""
    found = (maker(run) for maker in makers for run in runs)
    return [chart for chart in found if chart is not None]


def gpu(runs: list[Run]) -> Section | None:
    memory, power, clock = charts.gpu_memory_lines, charts.gpu_power_lines, charts.gpu_clock_lines
    blocks = _beside(runs, (memory, power, clock, charts.gpu_pcie_lines))
    blocks += _each(runs, _pcie_of)
    for run in runs:
        if run["throttle"]:
            words = run.lead("It was slowed down: ") + ", ".join(run["throttle"])
            blocks.append(Paragraph([f"{words}."]))
    return _section("gpu", "GPU memory, power and PCIe", blocks)


def _pcie_of(run: Run) -> list[Block]:
    """A row a device that tells of its PCIe."""
    ways = ("pcie_received_bytes_s", "pcie_sent_bytes_s")
    rows: list[list[Words]] = []
    for i, device in enumerate(run["devices"]):
        if all(device[way]["mean"] is None for way in ways):
            continue
        numbers = [
            [run.get(f"devices/{i}/{way}/{what}", form.byte_rate)]
            for way in ways
            for what in ("mean", "peak")
        ]
        rows.append([["GPU ", run.get(f"devices/{i}/device", form.plain)], *numbers])
    head = ["over PCIe", "received", "at most", "sent", "at most"]
    return [Table(head, rows, "lrrrr")] if rows else []


# --- tables ---------------------------------------------------------------------------------------


def ranks(runs: list[Run]) -> Section | None:
    """A row a rank, where there are several."""
    several = [run for run in runs if len(run.ranks) > 1]
    return _section("ranks", "Ranks", _each(several, _ranks_of))


def _ranks_of(run: Run) -> list[Block]:
    rows: list[list[Words]] = []
    for i, rank in enumerate(run.ranks):
        cause = rank["causes"][0] if rank["causes"] else None
        rows.append(
            [
                [run.get(f"ranks/{i}/rank", form.plain)],
                [run.get(f"ranks/{i}/busy/compute", form.share)],
                [run.get(f"ranks/{i}/busy/communication", form.share)],
                [run.get(f"ranks/{i}/idle_s", form.seconds)],
                [run.get(f"ranks/{i}/step_s/median", form.seconds)],
                [run.get(f"ranks/{i}/step_s/p95", form.seconds)],
                [run.get(f"ranks/{i}/samples_s", form.decimal)],
                [(cause["words"] or cause["cause"] or "") if cause else form.UNSEEN],
            ]
        )
    head = ["rank", "busy", "communication", "idle", "step", "step, p95", "samples/s", "waits for"]
    blocks: list[Block] = []
    if run["slowest_rank"] is not None:
        blocks.append(Paragraph([run["slowest_rank"]["words"] or ""]))
    return [*blocks, Table(head, rows, "lrrrrrrl")]


def loaders(runs: list[Run]) -> Section | None:
    return _section("loaders", "Loaders", _each(runs, _loaders_of))


def _loaders_of(run: Run) -> list[Block]:
    blocks: list[Block] = []
    if run["loaders"]:
        blocks.append(_loader_settings(run))
        blocks.append(_loader_times(run))
    for i, loader in enumerate(run["loaders"]):
        files = loader["files"]
        if files is not None and files["opens"]:
            words = [f"{_loader_name(loader)} opened files "]
            words += [run.get(f"loaders/{i}/files/opens", form.count), " times, "]
            words += [run.get(f"loaders/{i}/files/distinct", form.count), " of them different, "]
            words += [run.get(f"loaders/{i}/files/bytes", form.size), " in all, from "]
            words += [Code(f"{files['folder'] or ''}/*{files['extension'] or ''}"), "."]
            blocks.append(Paragraph(words, quiet=True))
    return blocks


def _loader_name(loader: dict[str, Any]) -> str:
    name = loader["class"] or loader["kind"] or "loader"
    return f"{name} of {loader['dataset']}" if loader["dataset"] else name


def _yes(value: bool | None) -> str:
    return form.UNSEEN if value is None else "yes" if value else "no"


def _loader_settings(run: Run) -> Table:
    rows: list[list[Words]] = []
    for i, loader in enumerate(run["loaders"]):
        rows.append(
            [
                [_loader_name(loader), " ", Code(_place(loader))] if loader["file"]
                else [_loader_name(loader)],
                *([run.get(f"loaders/{i}/{name}", form.count)]
                  for name in ("batch_size", "workers", "prefetch_factor")),
                [_yes(loader["pin_memory"])],
                [_yes(loader["persistent_workers"])],
                [run.get(f"loaders/{i}/samples", form.count)],
                [run.get(f"loaders/{i}/batch_bytes", form.size)],
            ]
        )  # fmt: skip
    head = ["loader", "batch", "workers", "prefetch", "pinned", "persistent", "samples", "a batch"]
    return Table(head, rows, "lrrrllrr")


def _loader_times(run: Run) -> Table:
    names = ("next_s", "start_s", "fetch_s", "fetch_cpu_s", "collate_s", "send_s", "fetch_median_s")
    rows: list[list[Words]] = []
    for i, loader in enumerate(run["loaders"]):
        cells = [[run.get(f"loaders/{i}/{name}", form.seconds)] for name in names]
        rows.append([[_loader_name(loader)], *cells])
    head = ["loader", "loop in next()", "starting", "fetching", "of it on a CPU", "collating"]
    return Table([*head, "handing over", "a batch's fetch"], rows, "lrrrrrrr")


def processes(runs: list[Run]) -> Section | None:
    return _section("processes", "Processes and threads", _each(runs, _processes_of))


def _processes_of(run: Run) -> list[Block]:
    found = run["processes"]
    if not found:
        return []
    most = sorted(range(len(found)), key=lambda i: -(found[i]["cpu_s"] or 0.0))[:12]
    shapes = [
        ("cpu_s", form.seconds),
        ("run_delay_s", form.seconds),
        ("io_wait_s", form.seconds),
        ("read_bytes", form.size),
        ("written_bytes", form.size),
        ("minor_faults", form.count),
        ("major_faults", form.count),
        ("max_rss_bytes", form.size),
    ]
    rows: list[list[Words]] = []
    for i in most:
        name = _process_name(found[i])
        numbers = [[run.get(f"processes/{i}/{key}", shape)] for key, shape in shapes]
        rows.append([[name, " ", Code(found[i]["name"] or "")], *numbers])
    head = ["process", "CPU", "waited for a CPU", "for a disk", "read", "written"]
    head += ["minor faults", "major", "most memory"]
    blocks: list[Block] = [Table(head, rows, "lrrrrrrrr")]
    if len(found) > len(most):
        blocks.append(Paragraph([f"{len(found) - len(most)} more used less CPU."], quiet=True))
    return blocks + _threads_of(run)


def _process_name(process: dict[str, Any]) -> str:
    role, worker = process["role"] or "process", process["worker"]
    return f"{role} {worker:.0f}" if worker is not None and worker >= 0 else role


def _threads_of(run: Run) -> list[Block]:
    """Those that used most CPU."""
    names = {process["pid"]: _process_name(process) for process in run["processes"]}
    rows: list[list[Words]] = []
    for i, thread in enumerate(run["threads"]):
        place = ", its main thread" if thread["thread"] == thread["pid"] else ""
        rows.append(
            [
                [Code(thread["name"] or "?")],
                [f"{names.get(thread['pid'], 'process')}{place}"],
                [run.get(f"threads/{i}/cpu_s", form.seconds)],
                [run.get(f"threads/{i}/run_delay_s", form.seconds)],
            ]
        )
    head = ["thread", "of", "CPU", "waited for a CPU"]
    return [Table(head, rows, "llrr")] if rows else []
