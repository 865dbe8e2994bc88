"""Scripts that plant one cause each: `stoker run` names it first, with the share that it has.

Each runs once. Where the verdict is wrong it runs twice more, and both must be right: a verdict
that is wrong more often than now and then fails here, and one pause of a shared machine does not.
What needed more than one run is told as a warning."""

import importlib.util
import warnings

import pytest
import truth

pytest.importorskip("torch")


def check(name, device="cpu", end="return"):
    needed = truth.NEEDS.get(name)
    if needed and not importlib.util.find_spec(needed):
        pytest.skip(f"{needed} is not installed")
    outcome = truth.try_out(name, device, end)
    if not outcome.complaints:
        return
    first = outcome.complaints
    for _ in range(2):
        outcome = truth.try_out(name, device, end)
        if outcome.complaints:
            break
    else:
        warnings.warn(f"{name} on {device}, wrong once of three times: {first}", stacklevel=2)
        return
    if truth.foreign(outcome) > 2 * truth.FREE and name not in truth.NOISY:
        pytest.skip(f"other programs use {truth.foreign(outcome):.0%} of the CPUs")
    stolen = max(truth.stolen() for _ in range(3))
    if stolen > truth.STOLEN:
        pytest.skip(f"a busy loop was without its CPU for {stolen:.0%} of the time")
    raise AssertionError(f"{outcome.complaints}\n{outcome.told}\n{outcome.words}")


@pytest.mark.parametrize("name", truth.on("cpu"))
def test_the_planted_cause_is_named_first_with_its_share(name):
    check(name)


SIMULATED = ["slow_read", "slow_transform_main", "too_few_workers", "checkpoints"]
SIMULATED += ["noisy_neighbour", "own_generator", "own_thread", "healthy"]
SIMULATED += [name for name, where in truth.SCRIPTS.items() if where == "cuda"]


@pytest.mark.skipif(not truth.CUPTI.exists(), reason="the simulated CUPTI is not built")
@pytest.mark.parametrize("name", SIMULATED)
def test_so_it_is_on_a_gpu_that_is_simulated(name):
    check(name, "sim")


@pytest.mark.parametrize(
    ("name", "end"),
    [("huge_collate", "exit"), ("too_few_workers", "raise"), ("checkpoints", "kill")],
)
def test_a_script_that_ends_badly_is_judged_all_the_same(name, end):
    check(name, end=end)


def test_every_script_is_run():
    scripts = {path.stem for path in (truth.HERE / "scripts").glob("*.py")} - {"planted"}
    assert scripts == set(truth.SCRIPTS)
    assert len(scripts) >= 16
