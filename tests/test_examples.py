"""The scripts and notebooks in `examples/` run, and say what they are there to say."""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.doc_pages import past_front_doors
from tests.repository import ROOT

EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
FEW = 5
"""Lines that the way from CSV logs of one's own to an answer takes, at most."""


def cells_of(name):
    """(kind, text) of each cell of a notebook."""
    found = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in found)
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fits_a_page_and_says_what_it_shows_and_how_to_run_it(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 60
    assert said.splitlines()[0].endswith((".", "?"))
    assert "__main__" not in text or f"Run:  python examples/{name}" in said
    assert not past_front_doors(text)


def test_a_notebook_says_how_to_run_it_and_takes_few_lines_for_an_answer():
    shown = set()
    for name in NOTEBOOKS:
        cells = cells_of(name)
        assert cells[0][0] == "markdown" and f"jupyter lab examples/{name}" in cells[0][1]
        for kind, text in cells:
            if kind == "code" and "s2r." in text:
                assert not past_front_doors(text)
                assert len([line for line in text.splitlines() if line.strip()]) <= FEW
                shown |= {part.partition("(")[0] for part in text.split("s2r.")[1:]}
    assert shown >= {"select", "measure_gap", "identify", "train", "evaluate", "attribute"}


def run(tmp_path, *arguments):
    """What a script says; it must come to its end and leave nothing among the examples."""
    before = set(EXAMPLES.rglob("*"))
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=EXAMPLES, env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(EXAMPLES.rglob("*")) == before
    return done.stdout


@pytest.mark.slow
def test_a_csv_log_of_ones_own_gives_a_gap(tmp_path):
    said = run(tmp_path, "own_robot_from_csv.py")
    assert "the twin is off by" in said and "shoulder_pos: off by" in said


@pytest.mark.slow
def test_an_arm_is_identified_with_a_posterior(tmp_path):
    said = run(tmp_path, "identify_and_posterior.py", "--out", str(tmp_path / "kept"))
    assert "body/link/mass: 0.6" in said
    assert (tmp_path / "kept" / "twin" / "posterior.json").is_file()


@pytest.mark.slow
def test_a_task_of_ones_own_is_trained(tmp_path):
    assert "success in worlds it has never seen" in run(tmp_path, "train_own_task.py", "--quick")


@pytest.mark.slow
def test_a_bundle_is_deployed_and_diagnosed(tmp_path):
    said = run(tmp_path, "deploy_and_doctor.py")
    assert "nothing was sent" in said and "the interface is fine" in said


@pytest.mark.slow
def test_the_loop_is_walked(tmp_path):
    said = run(tmp_path, "close_the_loop.py", "--quick", "--out", str(tmp_path / "loop"))
    assert "succeeded" in said and (tmp_path / "loop" / "summary.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_cell_of_a_notebook_runs(name, tmp_path):
    code = [text for kind, text in cells_of(name) if kind == "code"]
    script = tmp_path / "cells.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n" + "\n\n".join(code))
    run(tmp_path, str(script))
