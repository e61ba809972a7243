"""Imports point downwards only, and the command line starts without the heavy libraries."""

import ast
import subprocess
import sys
from pathlib import Path

import sim2real

ROOT = Path(sim2real.__file__).parent
FLOORS = [
    {"errors", "arrays", "lazy"},
    {"files", "units", "plain"},
    {"intervals"},
    {"params", "reality"},
    {"contract"},
    {"data"},
    {"twin"},
    {"worlds"},
    {"logs"},
    {"randomize"},
    {"replay"},
    {"tasks"},
    {"policy"},
    {"learn"},
    {"identification"},
    {"gap"},
    {"doctor"},
    {"evaluation"},
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


def test_the_package_is_imported_without_heavy_libraries_and_loads_names_as_they_are_asked_for():
    code = (
        "import sys, sim2real; "
        "heavy = {'torch', 'mujoco', 'numpy', 'tyro', 'rich'}; "
        "print(sorted(heavy & set(sys.modules))); "
        "print(all(name in dir(sim2real) for name in sim2real.__all__)); "
        "print(sorted(name for name in sim2real.__all__ if not callable(getattr(sim2real, name))))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split("\n")[:3] == ["[]", "True", "[]"]
