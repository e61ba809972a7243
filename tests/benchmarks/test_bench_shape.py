"""The shape of a package is counted as strictly as the rules are meant."""

import ast

import pytest

from benchmarks.shape import Package, measure, public_names

FRONT = '"""A room.\n\n>>> 1 + 1\n2\n"""\n'


@pytest.fixture
def package(tmp_path):
    """Makes a package of two rooms; `files` are added to it."""

    def make(**files):
        folder = tmp_path / "product"
        plain = {
            "__init__.py": "",
            "errors.py": "class Mistake(Exception):\n    pass\n",
            "low/__init__.py": FRONT + 'from product.low.deep import made\n\n__all__ = ["made"]\n',
            "low/deep.py": "def made():\n    return 1\n",
            "high/__init__.py": FRONT,
        }
        for name, text in (plain | files).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Package.read(folder)

    return make


@pytest.mark.parametrize(
    "text",
    [
        "from product.low.deep import made",
        "from ..low.deep import made",
        "from ..low import deep",
        "from product.low import deep",
        "import product.low.deep",
        "import product.low.deep as found",
        "import product\nproduct.low.deep.made()",
        "from product import low\nlow.deep.made()",
        "import product.low as low\nlow.deep.made()",
        'from importlib import import_module\nimport_module("product.low.deep")',
        'from importlib import import_module\nimport_module("..low.deep", __package__)',
        'WHERE = "product.low.deep:made"',
        'WHERE = {"made": "low.deep"}',
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import product.low.deep",
        "def late():\n    from product.low.deep import made",
    ],
)
def test_a_deep_import_is_found_however_it_is_written(package, text):
    found = package(**{"high/part.py": text + "\n"}).deep_imports()
    assert found and all(file == "high/part.py" for file, _ in found)


@pytest.mark.parametrize(
    "text",
    [
        "from product.low import made",
        "from ..low import made",
        "import product.low",
        "from product import low\nlow.made()",
        "from product.errors import Mistake",
        "from product.high.other import made",
        "from .other import made",
        'NAME = "product.low"',
        'SAID = "see product.low.deep for more"',
    ],
)
def test_a_front_door_is_no_deep_import(package, text):
    files = {"high/part.py": text + "\n", "high/other.py": "made = 1\n"}
    assert package(**files).deep_imports() == set()


@pytest.mark.parametrize("text", ["from product.low import deep", "from . import deep"])
def test_a_front_door_that_hands_out_a_module_counts(package, text):
    assert package(**{"low/__init__.py": text + "\n"}).deep_imports()


def test_private_classes_and_classes_in_functions_share_their_names(package):
    one = "class _Step:\n    pass\n"
    two = "def made():\n    class _Step:\n        pass\n"
    assert package(**{"low/a.py": one, "high/b.py": two}).class_names_reused() == ["_Step"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("from typing import Any\nx: Any = 1\n", 1),
        ("from typing import Any as Whatever\nx: dict[str, Whatever] = {}\n", 1),
        ("import typing\nx: typing.Any = 1\n", 1),
        ("from typing import Any\nJson = dict[str, Any]\nOther = Any\nx: Other = 1\n", 3),
        ('from typing import Any\ndef f(x: "dict[str, Any]") -> "Any": ...\n', 2),
        ('from typing import cast\nx = cast("Any", 1)\n', 1),
        ("x = any([1])  # Any\n", 0),
    ],
)
def test_any_is_counted_under_every_name(package, text, count):
    assert package(**{"high/part.py": text}).anys() == count


def test_lines_of_templates_count_and_those_of_testing_do_not(package):
    before = package().lines()
    after = package(
        **{"high/page.html": "a\nb\n", "high/x.j2": "c\n", "testing/__init__.py": "x = 1\n"}
    )
    assert after.lines() == before + 3


def test_public_names_are_those_of_all_or_else_all_names(package):
    found = package(**{"high/__init__.py": "from product.low import made\n_x = 1\n"}).front_doors()
    assert public_names(found["low"]) == 1 and public_names(found["high"]) == 1


def test_a_lazy_front_door_exports_what_it_would_load(package):
    lazy = 'FILES = {"one": "a", "two": "b"}\n__all__ = list(FILES)\n'
    assert public_names(package(**{"high/__init__.py": lazy}).front_doors()["high"]) == 2


TASK = 'class Swing:\n    name = "swing-up"\n'


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(robot, dict)",
        "getattr(self._robot, 'enable', None)",
        "hasattr(opened.policy, 'limits')",
        "isinstance(x, StandIn)",
        "isinstance(x, (int, made.RemoteRobot))",
        "issubclass(kind, CpuWorlds)",
        "address.startswith('unit:')",
        "address.startswith(('tcp://', 'udp://'))",
        "address == 'lerobot:'",
        "task == 'swing-up'",
        "task in ('swing-up', 'reach')",
        "{'swing-up': 1}[task]",
    ],
)
def test_a_guess_at_what_stands_behind_a_seam_is_found(package, text):
    files = {"tasks/swing.py": TASK, "high/part.py": f"found = {text}\n"}
    assert package(**files).guesses() == ["high/part.py:1"]
    assert package(**files, **{"testing/part.py": f"{text}\n"}).guesses()[1] == "testing/part.py:1"


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(value, dict)",
        "getattr(robot_name, 'x')",
        "robot.abilities.enables",
        "isinstance(x, RobotAbilities)",
        "name.startswith('unit')",
        "task = 'swing-up'",
        "made(task='swing-up')",
    ],
)
def test_what_asks_no_seam_is_no_guess(package, text):
    assert package(**{"tasks/swing.py": TASK, "high/part.py": f"{text}\n"}).guesses() == []


def test_files_that_open_a_seam_may_look_and_tasks_know_their_names(package):
    look = "found = isinstance(policy, Bundle) or hasattr(robot, 'x')\n"
    files = {"evaluation/opened.py": look, "robot/connect.py": "address.startswith('unit:')\n"}
    mine = {"tasks/swing.py": TASK + "found = name == 'swing-up'\n"}
    assert package(**files, **mine).guesses() == []
    moved = {"evaluation/other.py": look}
    assert len(package(**moved).guesses()) == 2


def test_classes_that_hold_a_log_are_counted_where_analyses_are(package):
    one = "@dataclass\nclass {}:\n    times: Floats\n    {}: Floats\n"
    files = {
        "logs/a.py": one.format("Log", "readings"),
        "gap/b.py": "import dataclasses as d\n" + one.format("Pairs", "command").replace(
            "@dataclass", "@d.dataclass(frozen=True)"
        ),
        "gap/c.py": one.format("Curve", "values"),
        "data/d.py": one.format("Episode", "readings"),
    }  # fmt: skip
    assert package(**files).log_types() == ["Log", "Pairs"]


def test_conversions_by_hand_are_counted(package):
    text = "class A:\n    def to_dict(self): ...\n    @classmethod\n    def from_dict(cls): ...\n"
    assert len(package(**{"high/part.py": text}).conversions()) == 2


def test_every_figure_has_a_target(package):
    found = {result.name: result for result in measure(package().folder)}
    assert found["shape.deep_imports"].met and found["shape.front_doors_with_doctest"].met
    assert found["shape.front_doors_with_doctest"].target == ">= 2"
    assert all(result.target for result in found.values()) and len(found) == 12
    assert ast.literal_eval(found["shape.longest_file"].target.split()[1]) == 500
