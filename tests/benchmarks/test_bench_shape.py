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


def test_every_figure_has_a_target(package):
    found = {result.name: result for result in measure(package().folder)}
    assert found["shape.deep_imports"].met and found["shape.front_doors_with_doctest"].met
    assert found["shape.front_doors_with_doctest"].target == ">= 2"
    assert all(result.target for result in found.values()) and len(found) == 9
    assert ast.literal_eval(found["shape.longest_file"].target.split()[1]) == 500
