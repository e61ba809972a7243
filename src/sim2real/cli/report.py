"""`sim2real report`: the page of a stored result."""

from __future__ import annotations

from sim2real.cli.options import ReportPage
from sim2real.cli.output import answer
from sim2real.report import load_result, report_of


def run_report(config: ReportPage) -> int:
    """Make the page; 0."""
    page = report_of(config.result, config.out)
    told = {"page": str(page), **load_result(config.result).to_dict()} if config.json else {}
    return answer(told, f"page: {page}", json=config.json)
