"""`sim2real identify`: from recordings to a new version of a twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real.cli.logs import read_logs
from sim2real.cli.output import print_json, print_table, say
from sim2real.errors import Sim2RealError
from sim2real.identify.config import IdentifyConfig

if TYPE_CHECKING:
    from sim2real.data import Episode
    from sim2real.identify.identify import Identification
    from sim2real.identify.posterior import Posterior
    from sim2real.identify.problem import Problem
    from sim2real.identify.remainder import Learned


def run_identify(config: IdentifyConfig) -> int:
    """Identify as configured; 0, or 1 where the new twin was not promoted."""
    from sim2real.files import atomic_folder, write_json
    from sim2real.identify.align import aligned
    from sim2real.identify.identify import identify
    from sim2real.identify.starts import seen_states
    from sim2real.policy import Bundle
    from sim2real.report.identify import write_page
    from sim2real.report.progress import bar
    from sim2real.tasks import STARTS_FILE
    from sim2real.twin import Twin

    source = Bundle.open(config.twin).twin if Bundle.is_bundle(config.twin) else config.twin
    twin = Twin.load(source)
    time = datetime.now().strftime("%Y%m%d-%H%M%S")
    out = config.out or Path("runs") / "identify" / twin.name / time
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Sim2RealError(f"{out} is not empty; choose another with --out")
    episodes = read_logs(config.logs, channels=config.channels)
    held_back = read_logs(config.held_back, channels=config.channels) if config.held_back else []
    episodes, held_back = _apart(episodes, held_back)
    with bar("identify", quiet=config.json) as report:
        found = identify(
            twin,
            episodes,
            fitted=config.parameters,
            held_back=held_back,
            rate_hz=config.rate_hz,
            starts=config.starts,
            seed=config.seed,
            threads=config.threads,
            believe=_believe(config, report),
            report=lambda stage, done, of: report(done, of),
        )
    kept = {episode.id: episode for episode in [*episodes, *held_back]}
    test = [aligned(kept[name], twin, rate_hz=config.rate_hz) for name in found.check.recordings]
    learned = None
    if config.remainder and found.promoted:
        learned = _learned(config, found, episodes)
        found = replace(found, twin=replace(found.twin, remainder=learned.remainder))
    result = found.to_dict() | ({} if learned is None else {"remainder": learned.to_dict()})
    if out.exists():
        out.rmdir()  # empty: it was looked at above
    with atomic_folder(out) as folder:
        if found.promoted:
            found.twin.save(folder / "twin")
            logs = [aligned(one, found.twin, rate_hz=config.rate_hz) for one in episodes]
            if (seen := seen_states(found.twin, logs)) is not None:
                seen.save(folder / STARTS_FILE)
        write_page(folder / "report.html", found, twin, test)
        write_json(folder / "result.json", result)
    if config.json:
        print_json({"folder": str(out), **result})
    else:
        _show(found, out)
        if learned is not None:
            say(
                f"no remainder: {learned.why}"
                if learned.why
                else f"remainder: held-back error is {learned.ratio:.2f} times what it was without"
            )
    return 0 if found.promoted else 1


def _learned(config: IdentifyConfig, found: Identification, episodes: list[Episode]) -> Learned:
    """What the new twin leaves unexplained in the recordings it was fitted to."""
    from sim2real.identify.align import aligned
    from sim2real.identify.remainder import learn_remainder
    from sim2real.report.progress import bar

    logs = [aligned(episode, found.twin, rate_hz=config.rate_hz) for episode in episodes]
    with bar("remainder", quiet=config.json) as report:
        return learn_remainder(
            found.twin, logs, seed=config.seed, threads=config.threads, report=report
        )


def _believe(
    config: IdentifyConfig, report: Callable[[int, int], None]
) -> Callable[[Problem], Posterior] | None:
    """How a posterior is found, where not around the fit."""
    if config.method != "neural":
        return None
    from sim2real.identify.neural import learned_from

    return partial(learned_from, simulations=config.simulations, seed=config.seed, report=report)


def _apart(
    episodes: list[Episode], held_back: list[Episode]
) -> tuple[list[Episode], list[Episode]]:
    """Both without repetitions; a recording in both is a `Sim2RealError`."""
    fitted = {episode.id: episode for episode in episodes}
    kept = {episode.id: episode for episode in held_back}
    both = fitted.keys() & kept.keys()
    if both:
        raise Sim2RealError(
            f"{len(both)} of {len(kept)} held-back recordings are among the logs too"
            f" ({min(both)[:12]}, …): a check on what was fitted shows nothing; leave them out of"
            " one of the two"
        )
    return list(fitted.values()), list(kept.values())


def _show(found: Identification, out: Path) -> None:
    from sim2real.identify.plan import advice

    rows = []
    for k, (name, value) in enumerate(found.values.items()):
        shrunk = found.told.shrinkage[k]
        told = "yes" if shrunk < 0.5 else "hardly" if shrunk < 0.9 else "no"
        interval = f"± {1.96 * found.posterior.std[k]:.2g}"
        rows.append((name, found.problem.center[k], value, interval, told))
    print_table(("parameter", "before", "after", "95 %", "told"), rows)
    for group in found.told.combinations:
        say(f"only in combination: {', '.join(group)}")
    for note in found.notes:
        say(note)
    if outside := getattr(found.posterior, "outside", ()):
        say(
            f"{len(outside)} outcomes of the robot lie beyond those of all simulations: the learned"
            " posterior is a guess there; widen the priors, or the model is wrong"
        )
    check = found.check
    say(
        f"recordings held back: error over {check.horizon_s:g} s is {check.ratio:.2f} times what it"
        " was"
    )
    if found.promoted:
        say(f"new twin: {out / 'twin'}, version {found.twin.version}")
    else:
        say(f"not promoted: {found.why}")
    say(f"report: {out / 'report.html'}")
    twin = out / "twin" if found.promoted else found.twin.folder
    for line in advice(found.told, str(twin)):
        say(line)
