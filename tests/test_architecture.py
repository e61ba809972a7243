"""Imports point downwards only, and the command line starts without the heavy libraries."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import sim2real
from benchmarks.shape import Package

ROOT = Path(sim2real.__file__).parent
FLOORS = [
    {"errors", "arrays", "lazy", "phases"},
    {"files", "units", "plain", "named"},
    {"storage"},
    {"intervals", "results"},
    {"params", "reality"},
    {"contract"},
    {"scale"},
    {"data"},
    {"twin"},
    {"worlds"},
    {"logs"},
    {"randomize"},
    {"replay"},
    {"tasks"},
    {"policy"},
    {"learn"},
    {"gap"},
    {"identification"},
    {"evaluation"},
    {"doctor"},
    {"robot"},
    {"attribution"},
    {"plan"},
    {"loop"},
    {"report"},
    {"testing"},
    {"demo"},
    {"cli"},
]
"""Rooms from the ground up; a room may import its own floor's and lower ones', nothing above."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


@cache
def rooms_imported(path: Path) -> set[str]:
    """Rooms of the package that a file imports when it runs; type checking does not count."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sim2real."):
            found.add(node.module.split(".")[1])
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("sim2real.")}
    return found


def test_every_room_has_a_floor():
    rooms = {p.name.removesuffix(".py") for p in ROOT.iterdir() if p.name not in ("__init__.py",)}
    assert {room for room in rooms if not room.startswith(("_", "py."))} == set(FLOOR)


@pytest.mark.slow
def test_imports_point_downwards_only():
    wrong = []
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other in rooms_imported(path):
            if FLOOR[other] > FLOOR[room]:
                wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not wrong


def test_nobody_imports_the_stand_in_hardware_and_it_knows_nothing_of_twins():
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0]
        if room == "reality":
            assert rooms_imported(path) <= {"reality", "errors", "arrays"}, path
        elif room != "__init__.py":
            assert "reality" not in rooms_imported(path), path


def test_the_command_line_parses_without_heavy_imports():
    code = (
        "import sys, sim2real.cli; "
        "heavy = {'torch', 'mujoco', 'matplotlib', 'rsl_rl', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_room_of_data_loads_its_heavy_libraries_when_they_are_used():
    code = (
        "import sys, sim2real.data; "
        "heavy = {'av', 'deltalake', 'duckdb', 'h5py', 'numpy', 'pyarrow'}; "
        "print(sorted(heavy & set(sys.modules)), len(sim2real.data.__all__) <= 25)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[] True"


def test_the_package_is_imported_without_heavy_libraries():
    code = (
        "import sys, sim2real; "
        "heavy = {'torch', 'mujoco', 'numpy', 'tyro', 'rich'}; "
        "print(sorted(heavy & set(sys.modules))); "
        "print(all(name in dir(sim2real) for name in sim2real.__all__))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


@pytest.mark.slow
def test_rooms_know_only_the_front_doors_of_others():
    package = Package.read(ROOT)
    assert not list(package.deep_imports())


@pytest.mark.slow
def test_a_name_of_the_package_is_what_it_says_whatever_was_imported_before():
    code = (
        "import pkgutil, importlib, sim2real as s2r\n"
        "assert all(callable(getattr(s2r, name)) for name in s2r.__all__)\n"
        "for found in pkgutil.walk_packages(s2r.__path__, 'sim2real.'):\n"
        "    if not found.name.endswith('__main__'):\n"
        "        try:\n"
        "            importlib.import_module(found.name)\n"
        "        except ModuleNotFoundError as error:\n"
        "            assert error.name in ('mujoco_warp', 'warp'), error\n"
        "for name in s2r.__all__:\n"
        "    try:\n"
        "        getattr(s2r, name)(no_such_option=1)\n"
        "    except (TypeError, s2r.Sim2RealError):\n"
        "        continue\n"
        "    raise SystemExit(f'{name} takes anything')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_tests_use_public_names_only():
    """What is private of other libraries, or of a test's own, may be."""
    wrong = []
    for path in (ROOT.parents[1] / "tests").rglob("*.py"):
        if path.name.startswith("peer_"):  # runs in the environment of another library
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        mine = {"self", "cls"} | others(tree)
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.ImportFrom) and ours(node.module):
                names = [alias.name for alias in node.names]
            if isinstance(node, ast.Attribute) and of(node) not in mine:
                names = [node.attr]
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ours(node.value):
                names = node.value.split(".")
            wrong += [f"{path.name}:{node.lineno} {n}" for n in names if re.match(r"_[^_]", n)]
    assert not wrong


def ours(name: str | None) -> bool:
    """Whether a dotted name is of the package or the benchmarks."""
    return bool(re.fullmatch(r"(sim2real|benchmarks)(\.\w+)*", name or ""))


def others(tree: ast.AST) -> set[str]:
    """Modules of other libraries that a file imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names if not ours(a.name)}
    return found


def of(node: ast.AST) -> str:
    """The name that an attribute is of, in the end."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
