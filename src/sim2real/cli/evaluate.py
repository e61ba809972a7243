"""The verbs `compare`, `rank`, `power` and `predict`: what trials say."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real.cli.output import print_json, print_table, say
from sim2real.errors import Sim2RealError, nearest
from sim2real.evaluate.config import CompareConfig, PowerConfig, PredictConfig, RankConfig

if TYPE_CHECKING:
    from sim2real.evaluate.ranking import Measure, Ranking
    from sim2real.evaluate.trial import Trial


def run_compare(config: CompareConfig) -> int:
    """Run the verb `compare`."""
    from sim2real.evaluate.compare import compare
    from sim2real.evaluate.intervals import check_confidence

    check_confidence(config.confidence)
    found = compare(
        _trials(config.a, source=config.source),
        _trials(config.b, source=config.source),
        confidence=config.confidence,
        most=config.most,
        by_order=config.by_order,
    )
    if config.json:
        print_json(found.to_dict())
        return 0
    say(f"A: {found.first}")
    say(f"B: {found.second}")
    p_value = f"p {found.p_value:.2g} ({found.test}) if no more trials are made"
    say(f"B - A: {found.difference}, {p_value}")
    if found.paired:
        say(f"{found.pairs} pairs: {found.wins[0]} won by A alone, {found.wins[1]} by B alone")
    else:
        say("conditions do not match: compared as independent trials")
    if found.paired and any(found.unmatched):
        say(f"without a partner: {found.unmatched[0]} trials of A, {found.unmatched[1]} of B")
    if found.by_unit:
        wins = f"A on {found.unit_wins[0]}, B on {found.unit_wins[1]}"
        say(f"{found.by_unit} {found.sequential.counted}: more success of {wins}")
    for note in found.notes:
        say(note)
    say(str(found.sequential))
    return 0


def run_rank(config: RankConfig) -> int:
    """Run the verb `rank`."""
    from sim2real.evaluate.ranking import MEASURES, rank, unranked
    from sim2real.evaluate.ranking_table import Columns, read_scored

    columns = Columns(
        policy=config.policy,
        sim=config.sim,
        real=config.real,
        group=config.group,
        n_real=config.n_real,
    )
    scored, left_out = read_scored(config.table, columns)
    found = rank(scored, confidence=config.confidence, seed=config.seed)
    left_out += unranked(scored)
    if config.json:
        rankings = [ranking.to_dict() for ranking in found]
        print_json({"verdict": found[0].verdict, "rankings": rankings, "left_out": left_out})
        return 0
    for reason in left_out:
        say(f"left out: {reason}")
    rows = [
        (
            _name(ranking, len(found)),
            ranking.policies,
            *(_shown(ranking.measures[name].value) for name in MEASURES),
            f"{ranking.loss:.3f}",
        )
        for ranking in found
    ]
    print_table(("group", "policies", *MEASURES, "loss"), rows)
    if len(found) > 1:
        say("of all, mmrv and loss count in ranges of each group's real scores")
    for ranking in found:
        say(f"{_name(ranking, len(found))}: {ranking.verdict}".removeprefix(": "))
    first = found[0]
    if first.over:
        intervals = ", ".join(f"{name} {_interval(first.measures[name])}" for name in MEASURES)
        say(f"{100 * config.confidence:g} % intervals over {first.over}: {intervals}")
    return 0


def _name(ranking: Ranking, rankings: int) -> str:
    return ranking.group or ("all, within groups" if rankings > 1 else "")


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _interval(measure: Measure) -> str:
    text = _shown(measure.value)
    return text if measure.low is None else f"{text} [{measure.low:.2f}, {measure.high:.2f}]"


def run_power(config: PowerConfig) -> int:
    """Run the verb `power`."""
    from sim2real.evaluate.power import MOST, plan

    found = plan(
        config.first,
        config.second,
        power=config.power,
        alpha=config.alpha,
        correlation=config.correlation,
    )
    if config.json:
        print_json(found.to_dict())
        return 0
    say(
        f"trials of each policy to show {100 * config.first:g} % against {100 * config.second:g} %"
        f" with a chance of {100 * config.power:g} %:"
    )
    many = f"more than {MOST}"
    average = "" if found.sequential is None else f"{found.sequential:.0f} on average, "
    say(f"  {found.unpaired or many} under conditions of their own")
    say(f"  {found.paired or many} under the same conditions, pair by pair")
    say(
        f"  {average}{found.sequential_most or many} at most, under the same conditions, stopping"
        " when it is clear"
    )
    return 0


def run_predict(config: PredictConfig) -> int:
    """Run the verb `predict`."""
    from sim2real.evaluate.intervals import check_confidence
    from sim2real.evaluate.powered import of_trials
    from sim2real.evaluate.prediction import check_trials, counts_of, predict

    check_confidence(config.confidence)
    check_trials(config.trials)
    simulated = _trials(config.simulated, source="sim")
    real = _trials(config.real, source="real") if config.real else []
    robots = sorted({trial.unit for trial in real if trial.unit})
    if len(robots) > 1:
        raise Sim2RealError(
            f"--real is of one robot, and {config.real} has trials of {len(robots)}:"
            f" {', '.join(robots[:3])}"
        )
    result: dict[str, Any] = {}
    lines, missing = [], []
    asked = partial(
        predict, *counts_of(simulated), trials=config.trials, confidence=config.confidence
    )
    try:
        before = asked()
        result["prediction"] = before.to_dict()
        lines.append(f"one robot, of {before.draws} that it may be: {before}")
        if real:
            after = asked(real=(sum(trial.success for trial in real), len(real)))
            result["expected"] = after.to_dict()
            lines.append(f"knowing {len(real)} real trials: {after}")
    except Sim2RealError as error:
        missing.append(f"no prediction from draws: {error}")
    if real:
        try:
            powered = of_trials(real, simulated, confidence=config.confidence)
            result["real"] = powered.to_dict()
            lines.append(f"real trials alone: {powered.alone}")
            lines.append(f"with simulation of the same conditions: {powered}")
        except Sim2RealError as error:
            missing.append(f"nothing by condition: {error}")
    if not lines:
        raise Sim2RealError("; ".join(missing))
    if missing:
        result["note"] = "; ".join(missing)
    if config.json:
        print_json(result)
    else:
        for line in (*lines, *missing):
            say(line)
    return 0


def _trials(text: str, *, source: str | None = None) -> list[Trial]:
    """Trials named on the command line, all of one policy."""
    path, policy = text, ""
    if "@" in text and not Path(text).exists():
        path, policy = text.rsplit("@", 1)
    trials = [trial for trial in _read(path) if not source or trial.source == source]
    if not trials:
        kind = {"sim": "simulated ", "real": "real "}.get(source or "", "")
        raise Sim2RealError(f"{path} holds no {kind}trial that was judged")
    policies = sorted({trial.policy for trial in trials})
    if policy:
        trials = [trial for trial in trials if trial.policy == policy]
        if not trials:
            raise Sim2RealError(f"{path} has no policy {policy!r}{nearest(policy, policies)}")
    elif len(policies) > 1:
        raise Sim2RealError(
            f"{path} holds trials of {len(policies)} policies; say which, as {path}@{policies[0]}"
        )
    return trials


def _read(text: str) -> list[Trial]:
    from sim2real.data import Lake, read_logs
    from sim2real.evaluate.trial import trials_of_episodes, trials_of_lake
    from sim2real.evaluate.trial_files import read_trials

    if not text:
        raise Sim2RealError("'' names no trials")
    path = Path(text)
    if "://" in text or (path / "episodes").is_dir():
        return trials_of_lake(Lake.open(text))
    for folder in (path, path / "evaluate"):
        if (folder / "trials.npz").is_file():
            return read_trials(folder)
    if path.suffix in (".csv", ".json", ".npz"):
        return read_trials(path)
    return trials_of_episodes(read_logs([text]))
