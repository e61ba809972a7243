"""The verbs `evaluate`, `compare`, `rank`, `power` and `predict`: what trials say."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out, say_sentences
from sim2real.cli.output import print_json, print_table, say
from sim2real.evaluation import (
    CompareConfig,
    EvaluateConfig,
    Evaluation,
    PowerConfig,
    PredictConfig,
    RankConfig,
    RankedTable,
    compare,
    evaluate,
    expect,
    plan_trials,
    rank_table,
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
    folder = config.out or found.folder
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
    return carry_out(config, compare, show=say_sentences)


def run_rank(config: RankConfig) -> int:
    """Run the verb `rank`; 0."""
    return carry_out(config, rank_table, show=_show_ranks)


def _show_ranks(found: RankedTable, out: Path) -> None:
    print_table(found.columns, found.rows())
    say_sentences(found, out)


def run_power(config: PowerConfig) -> int:
    """Run the verb `power`; 0."""
    return carry_out(config, plan_trials, show=say_sentences)


def run_predict(config: PredictConfig) -> int:
    """Run the verb `predict`; 0."""
    return carry_out(config, expect, show=say_sentences)
