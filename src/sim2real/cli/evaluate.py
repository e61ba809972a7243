"""The verbs `evaluate` and `rank`."""

from __future__ import annotations

from pathlib import Path

from sim2real.cli.adapter import carry_out, say_sentences
from sim2real.cli.output import print_table, say
from sim2real.evaluation import (
    EvaluateConfig,
    Evaluation,
    RankConfig,
    RankedTable,
    evaluate,
    rank_table,
)
from sim2real.files import refuse_file
from sim2real.report import plot_evaluation


def run_evaluate(config: EvaluateConfig) -> int:
    """Run the verb `evaluate`; 0."""
    if config.out is not None:
        refuse_file(config.out)

    def show(found: Evaluation, out: Path) -> None:
        _show_evaluation(found)
        if config.lake:
            say(f"episodes kept in {config.lake}")

    return carry_out(
        config,
        evaluate,
        show=show,
        keep=_keep,
        place=lambda found: found.folder,
        lake=config.lake or None,
    )


def _keep(found: Evaluation, folder: Path) -> None:
    found.save(folder)
    plot_evaluation(folder / "evaluation.png", found)


def _show_evaluation(result: Evaluation) -> None:
    say(f"success {result.success}")
    for note in result.notes:
        say(note)
    if not result.effects:
        return
    say("success by parameter, from the lowest to the highest fifth; * for p < 0.01")
    rows = []
    for effect in result.effects:
        ends = f"{effect.edges[0]:.2g} .. {effect.edges[-1]:.2g}"
        rates = " ".join(f"{100 * rate.value:3.0f}" for rate in effect.rates)
        mark = "*" if effect.p_value < 0.01 else ""
        rows.append((effect.name, ends, rates, f"{effect.p_value:.2g}{mark}"))
    columns = ("parameter", "range", "success in fifths [%]", "p")
    print_table(columns, rows, whole=columns[1:])


def run_rank(config: RankConfig) -> int:
    """Run the verb `rank`; 0."""
    return carry_out(config, rank_table, show=_show_ranks)


def _show_ranks(found: RankedTable, out: Path) -> None:
    print_table(found.columns, found.rows())
    say_sentences(found, out)
