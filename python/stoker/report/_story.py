"""The story of one run or of several: the answer, the problem, what changed, what to do."""

from __future__ import annotations

from . import _format as form
from ._document import (
    Block,
    Figure,
    Figures,
    Heading,
    Listing,
    Notice,
    Paragraph,
    Section,
    Snippet,
    Table,
    Word,
    Words,
)
from ._format import Number, made
from ._run import GOAL, Run, reduction
from ._run_charts import epoch_bar

NOTHING = "Neither training steps nor a GPU were seen, so there is nothing to judge."


def _sentence(text: str | None) -> str:
    """Ends with a full stop."""
    text = (text or "").strip()
    return text if not text or text[-1] in ".!?" else text + "."


def _upper(text: str | None) -> str:
    text = (text or "").strip().rstrip(".")
    return text[:1].upper() + text[1:]


# --- the answer -----------------------------------------------------------------------------------


def answer(runs: list[Run]) -> Words:
    """In one line."""
    if len(runs) == 1:
        return [_verdict_words(runs[0])]
    first, last = runs[0], runs[-1]
    before, after, how = time_pair(first, last)
    words: list[Word] = []
    change = reduction(before, after)
    if change is not None:
        words += [f"{how} takes ", after, " instead of ", before, ": "]
        if abs(change) < 0.005:
            words += ["no change. "]
        else:
            less = "less" if change > 0 else "more"
            words += [made("reduction", abs(change), form.share), f" {less}. "]
    busy_before, busy_after = first.busy(), last.busy()
    if busy_before.value is not None and busy_after.value is not None:
        is_busy = last.is_busy[0].upper() + last.is_busy[1:]
        words += [f"{is_busy} ", busy_after, " of the time instead of ", busy_before]
        words += ["."]
    return words or ["The runs cannot be compared: too little was seen of them."]


def _verdict_words(run: Run) -> str:
    words = run["verdict"]["words"]
    if not run.reliable:
        return "This run is unreliable: no verdict is given. " + _sentence(run["unreliable"][0]
                if run["unreliable"] else "")  # fmt: skip
    return _sentence(words) if words else NOTHING


def time_pair(first: Run, last: Run) -> tuple[Number, Number, str]:
    """What is compared: an epoch, or where there is none, the time that a sample takes."""
    before, after = first.epoch(), last.epoch()
    if before.value and after.value:
        return before, after, "An epoch"
    times = []
    for run in (first, last):
        rate = run.summed("samples_s", form.rate).value
        times.append(run.made("sample_s", 1 / rate if rate else None, form.seconds))
    return times[0], times[1], "A sample"


def notices(runs: list[Run]) -> list[Notice]:
    """Why numbers are not to be trusted, and what was not seen."""
    found = []
    for run in runs:
        if not run.reliable:
            title = _titled(runs, run, "This run is unreliable: its numbers may be wrong")
            items = [[_sentence(reason)] for reason in run["unreliable"]]
            found.append(Notice(title, items, bad=True))
    for run in runs:
        items: list[Words] = [[_sentence(text)] for text in run["notices"]]
        end = run["exit"]
        if end["signal"]:
            ended = f"The command was ended by signal {end['signal']:.0f}; "
            items.append([ended + "the report covers what was seen until then."])
        elif end["status"]:
            items.append([f"The command ended with status {end['status']:.0f}."])
        if items:
            found.append(Notice(_titled(runs, run, "To know"), items))
    differences = _differences(runs)
    if differences:
        found.append(Notice("The runs differ in more than their code", differences))
    return found


def _titled(runs: list[Run], run: Run, title: str) -> str:
    return title if len(runs) == 1 else f"{run.label}: {title[0].lower()}{title[1:]}"


def _differences(runs: list[Run]) -> list[Words]:
    """What makes a comparison lame."""
    kinds = [
        ("how they were watched", lambda run: run["mode"]),
        ("GPU", lambda run: run["machine"]["gpu"]),
        ("CPUs", lambda run: run["machine"]["cpus"]),
        ("number of ranks", lambda run: len(run.ranks)),
        ("samples an epoch", _samples_an_epoch),
    ]
    words: list[Words] = []
    for what, value_of in kinds:
        values = [value_of(run) for run in runs]
        if len({value for value in values if value is not None}) > 1:
            said = ", ".join(
                f"{run.label}: {form.UNSEEN if value is None else value}"
                for run, value in zip(runs, values, strict=True)
            )
            words.append([f"{what[0].upper()}{what[1:]} ({said})."])
    return words


def _samples_an_epoch(run: Run) -> int | None:
    """Of whole epochs; nearly the same counts as the same."""
    counts = [epoch["samples"] for rank in run.ranks for epoch in rank["epochs"]]
    known = [count for count in counts if count]
    return round(max(known)) if known else None


# --- problem and goal -----------------------------------------------------------------------------


def problem(runs: list[Run]) -> Section:
    run = runs[0]
    blocks: list[Block] = []
    if not run.ranks:
        return Section("problem", "Problem and goal", [Paragraph([NOTHING])])
    was_busy = run.is_busy.replace(" is", " was").replace(" are", " were")
    words: list[Word] = ["While it trained (", run.judged(), f"), {was_busy} ", run.busy()]
    words += [f" of the time. The {run.who} waited "]
    words += [run.summed("idle_s", form.seconds), ". "]
    if run.epoch().value is not None:
        words += ["An epoch took ", run.epoch()]
        if run.total("samples_s"):
            words += [" at ", run.summed("samples_s", form.samples)]
        words += [". "]
    bound = run["verdict"]["gain_bound"]
    if bound and bound > 1.005 and run.reliable:
        how = run["verdict"]["gain_is"] or "estimated"
        words += ["Without that wait it would be up to ", run.get("verdict/gain_bound", form.times)]
        words += [f" as fast ({how}). "]
    blocks.append(Paragraph(words))
    busy = run.busy().value
    goal = f"The goal: {run.is_busy} at least {form.share(GOAL).replace('.0', '')} of the time, "
    goal += "and so an epoch is shorter."
    if busy is not None and busy >= GOAL:
        goal += " This run meets it already."
    blocks.append(Paragraph([goal]))
    if len(runs) == 1:
        blocks.append(Figures(_figures(run)))
    return Section("problem", "Problem and goal", blocks)


def _figures(run: Run) -> list[Figure]:
    median = run.get("ranks/0/step_s/median", form.seconds)
    figures = [
        Figure(run.busy_name, run.busy()),
        Figure("epoch", run.epoch()),
        Figure("samples/s", run.summed("samples_s", form.decimal)),
        Figure("median step", median, note="of the first rank" if len(run.ranks) > 1 else ""),
    ]
    return [figure for figure in figures if figure.number.value is not None]


# --- before and after -----------------------------------------------------------------------------


def comparison(runs: list[Run]) -> Section | None:
    """The first run against the others."""
    if len(runs) < 2:
        return None
    first, last = runs[0], runs[-1]
    before, after, how = time_pair(first, last)
    change = reduction(before, after)
    name = "epoch time" if how == "An epoch" else "time a sample"
    figures = [
        Figure(name, after, before),
        Figure(last.busy_name, last.busy(), first.busy()),
        Figure(
            "samples/s",
            last.summed("samples_s", form.decimal),
            first.summed("samples_s", form.decimal),
        ),
    ]
    if change is not None:
        how = "reduced by" if change >= 0 else "grown by"
        figures.append(Figure(f"{name} {how}", made("reduction", abs(change), form.share)))
    blocks: list[Block] = [Figures([one for one in figures if one.number.value is not None])]
    chart = epoch_bar(runs)
    if chart is not None:
        blocks.append(chart)
    blocks.append(_comparison_table(runs))
    return Section("comparison", "Before and after", blocks)


def _comparison_table(runs: list[Run]) -> Table:
    rows: list[list[Words]] = []
    first = runs[0]
    for run in runs:
        before, after, _ = time_pair(first, run)
        change = None if run is first else reduction(before, after)
        cause = run["causes"][0]["words"] if run["causes"] else None
        rows.append(
            [
                [run.label],
                [run.epoch()],
                [run.busy()],
                [run.summed("samples_s", form.decimal)],
                [run.get("ranks/0/step_s/median", form.seconds) if run.ranks else form.UNSEEN],
                [made(f"{run.index}/reduction", change, form.share)],
                [cause or form.UNSEEN],
            ]
        )
    head = ["run", "epoch", "busy", "samples/s", "median step", "time reduced by", "waits most for"]
    return Table(head, rows, "lrrrrrl")


# --- strategy -------------------------------------------------------------------------------------


def strategy(runs: list[Run]) -> Section | None:
    """Why that was the bottleneck, what to do about it, and why that."""
    if not any(run.ranks for run in runs):
        return None
    blocks: list[Block] = []
    for run in runs:
        if len(runs) > 1:
            blocks.append(Heading([run.label]))
        blocks += _strategy_of(run)
    return Section("strategy", "Optimisation strategy", blocks)


def _strategy_of(run: Run) -> list[Block]:
    verdict = run["verdict"]
    if not run.reliable:
        return [Paragraph(["No advice is given for an unreliable run."])]
    blocks: list[Block] = []
    if verdict["words"] and not run.alone:  # else it is the answer above
        blocks.append(Paragraph([_sentence(verdict["words"])]))
    if verdict["why"]:
        blocks.append(Paragraph(["Why: " + _sentence(verdict["why"])]))
    if verdict["sure"]:
        sure = f"How sure: {verdict['sure']}"
        reason = f": {verdict['sure_why']}" if verdict["sure_why"] else ""
        blocks.append(Paragraph([_sentence(sure + reason)], quiet=True))
    if verdict["advice"]:
        items = [_advice(run, number) for number in range(len(verdict["advice"]))]
        blocks.append(Listing(items, numbered=True))
    elif not blocks:
        blocks.append(Paragraph(["There is nothing to advise."]))
    if verdict["against"]:
        items = [
            [Paragraph([f"{_upper(one['do'])}: {_sentence(one['why'])}"])]
            for one in verdict["against"]
        ]
        blocks += [Paragraph(["What would gain nothing here:"]), Listing(items)]
    what_if = run["what_if"]
    if what_if is not None:
        blocks.append(_what_if(run))
    return blocks


def _advice(run: Run, place: int) -> list[Block]:
    advice = run["verdict"]["advice"][place]
    blocks: list[Block] = [Heading([_sentence(advice["do"])])]
    words: list[Word] = [_sentence(advice["why"])]
    if advice["gain"] and advice["gain"] > 1:
        gain = run.get(f"verdict/advice/{place}/gain", form.times)
        words += [" At most ", gain, f" as fast ({advice['gain_is'] or 'estimated'})."]
    blocks.append(Paragraph(words))
    if advice["snippet"]:
        blocks.append(Snippet(advice["snippet"]))
    return blocks


def _what_if(run: Run) -> Paragraph:
    """What a second run with its batches in memory measured."""
    words: list[Word] = ["Measured: with batches replayed from memory a step takes "]
    words += [run.get("what_if/step_median_s", form.seconds), " (median), "]
    words += [run.get("what_if/samples_s", form.samples), ", busy "]
    words += [run.get("what_if/busy", form.share), ": "]
    words += [run.get("what_if/gain", form.times), " as fast as this run."]
    return Paragraph(words)
