"""The verbs `evaluate`, `compare`, `rank`, `power` and `predict`: what trials say."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_json, print_table, say
from sim2real.evaluation import (
    MEASURES,
    MOST,
    CompareConfig,
    Comparison,
    EvaluateConfig,
    Evaluation,
    Expectation,
    PowerConfig,
    PredictConfig,
    RankConfig,
    RankedTable,
    Ranking,
    RankMeasure,
    TrialPlan,
    compare,
    evaluate,
    expect,
    plan_trials,
    rank_table,
    results_folder,
)
from sim2real.files import refuse_file
from sim2real.report import bar, plot_evaluation


def run_evaluate(config: EvaluateConfig) -> int:
    """Run the verb `evaluate`; 0."""
    if config.out is not None:
        refuse_file(config.out)
    with bar("evaluate", quiet=config.json) as report:
        found = evaluate(
            config.run,
            episodes=config.episodes,
            each=config.each,
            params=config.params,
            remainder=config.remainder,
            seed=config.seed,
            confidence=config.confidence,
            lake=config.lake or None,
            threads=config.threads,
            report=report,
        )
    folder = config.out or results_folder(config.run)
    found.save(folder)
    plot_evaluation(folder / "evaluation.png", found)
    if config.json:
        print_json(found)
    else:
        _show_evaluation(found)
        say(f"written: {folder}")
        if config.lake:
            say(f"episodes kept in {config.lake}")
    return 0


def _show_evaluation(result: Evaluation) -> None:
    say(f"success {result.success}")
    if not result.effects:
        return
    say("success along each parameter, lowest fifth to highest")
    rows = []
    for effect in result.effects:
        ends = f"{effect.edges[0]:.2g} .. {effect.edges[-1]:.2g}"
        rates = " ".join(f"{100 * rate.value:3.0f}" for rate in effect.rates)
        telling = "*" if effect.p_value < 0.01 else ""
        rows.append((effect.name, ends, rates, f"{effect.p_value:.2g}{telling}"))
    columns = ("parameter", "range", "success in fifths [%]", "p")
    print_table(columns, rows, whole=columns[1:])


def run_compare(config: CompareConfig) -> int:
    """Run the verb `compare`; 0."""
    return carry_out(config, compare, show=_show_comparison)


def _show_comparison(found: Comparison, out: Path) -> None:
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


def run_rank(config: RankConfig) -> int:
    """Run the verb `rank`; 0."""
    return carry_out(config, rank_table, show=_show_ranks)


def _show_ranks(ranked: RankedTable, out: Path) -> None:
    found = ranked.rankings
    for reason in ranked.left_out:
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
        say(f"{100 * ranked.confidence:g} % intervals over {first.over}: {intervals}")


def _name(ranking: Ranking, rankings: int) -> str:
    return ranking.group or ("all, within groups" if rankings > 1 else "")


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _interval(measure: RankMeasure) -> str:
    text = _shown(measure.value)
    return text if measure.low is None else f"{text} [{measure.low:.2f}, {measure.high:.2f}]"


def run_power(config: PowerConfig) -> int:
    """Run the verb `power`; 0."""
    return carry_out(config, plan_trials, show=lambda found, out: _show_plan(config, found))


def _show_plan(config: PowerConfig, found: TrialPlan) -> None:
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


def run_predict(config: PredictConfig) -> int:
    """Run the verb `predict`; 0."""
    return carry_out(config, expect, show=_show_expectation)


def _show_expectation(found: Expectation, out: Path) -> None:
    for line in found.sentences():
        say(line)
