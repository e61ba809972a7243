"""Values become plain data and come back, and what cannot come back says why in one line."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.plain import ALONE, Count, High, Low, PlainData, Positive, of_plain, plain, written_as


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Shape(PlainData):
    kind: ClassVar[str] = ""
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Disc(Shape, also=("area",)):
    kind: ClassVar[str] = "disc"
    radius: Positive

    def area(self):
        return math.pi * self.radius**2


@dataclass(frozen=True, kw_only=True)
class Box(Shape, without=("sides",)):
    kind: ClassVar[str] = "box"
    sides: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self):
        if self.sides[0] > self.sides[1]:
            raise Sim2RealError("the short side comes first")


@dataclass(frozen=True, kw_only=True)
class Scene:
    shapes: tuple[Shape, ...] = ()
    colour: Colour = Colour.RED
    mode: Literal["fast", 1] = "fast"
    limit: tuple[Low, High] = (-math.inf, math.inf)
    columns: Annotated[tuple[str, ...], ALONE, written_as("from")] = ()
    path: Path | None = None
    counts: Mapping[str, Count] = field(default_factory=dict)
    either: int | str = 0


@dataclass(frozen=True)
class Numbers(PlainData, lenient=True):
    rows: Floats


def test_a_scene_comes_back_from_json():
    scene = Scene(
        shapes=(Disc(name="a", radius=2.0), Box()), colour=Colour.BLUE, mode=1,
        limit=(0.0, math.inf), path=Path("a/b"), counts={"x": 3}, either="words",
    )  # fmt: skip
    told = plain(scene)
    assert told["shapes"][0] == {"kind": "disc", "name": "a", "radius": 2.0, "area": 4 * math.pi}
    assert told["shapes"][1] == {"kind": "box", "name": ""} and told["limit"] == [0.0, None]
    told["from"] = told.pop("columns")
    assert of_plain(Scene, json.loads(json.dumps(told, allow_nan=False))) == scene


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "the scene must be a table"),
        ({"color": "red"}, "the scene has no 'color'; did you mean 'colour'"),
        ({"colour": "green"}, "the scene: colour: 'green' is unknown; did you mean 'red'?"),
        ({"mode": "slow"}, "mode: 'slow' is unknown"),
        ({"columns": []}, "has no 'columns'"),
        ({"from": 3}, "from must be text, not 3"),
        ({"path": 3}, "path must be text"),
        ({"counts": {"x": -1}}, "counts: 'x' must be at least 0, not -1"),
        ({"counts": {"x": True}}, "must be a whole number, not True"),
        ({"limit": [1]}, "limit must be a list of length 2, not [1]"),
        ({"limit": [0, float("nan")]}, "limit 2 must be a number, not nan"),
        ({"either": 1.5}, "either must be a whole number or text, not 1.5"),
        ({"shapes": {}}, "shapes must be a list"),
        ({"shapes": [{}]}, "shapes 1 needs a 'kind'; there are 'box', 'disc'"),
        ({"shapes": [{"kind": "disk"}]}, "kind 'disk' is unknown; did you mean 'disc'"),
        ({"shapes": [{"kind": "disc", "name": "a"}]}, "shapes 'a' needs 'radius'"),
        ({"shapes": [{"kind": "disc", "radius": 0}]}, "radius must be more than 0, not 0"),
        ({"shapes": [{"kind": "box", "sides": [2, 1]}]}, "shapes 1: the short side comes first"),
    ],
)
def test_what_is_no_scene_is_one_clear_line(data, words):
    with pytest.raises(Sim2RealError) as caught:
        of_plain(Scene, data, "the scene")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_one_column_may_stand_alone():
    assert of_plain(Scene, {"from": "q"}).columns == of_plain(Scene, {"from": ["q"]}).columns


def test_arrays_have_null_for_what_is_not_finite_and_others_names_are_passed_over():
    rows = np.array([[1.0, np.nan], [np.inf, 4.0]])
    assert plain(Numbers(rows)) == {"rows": [[1.0, None], [None, 4.0]]}
    found = Numbers.from_dict({"rows": [[1, None]], "theirs": 3}).rows
    assert found.shape == (1, 2) and np.isnan(found[0, 1])
    with pytest.raises(Sim2RealError, match="rows must be numbers"):
        Numbers.from_dict({"rows": [[1], [2, 3]]})


@dataclass(frozen=True, kw_only=True)
class Drawing(
    PlainData,
    schema=2,
    also=("size=scene.colour.name.__len__", "note?", "mine?=other.path"),
    without=("scene",),
):
    schema: int = 2
    scene: Scene = field(default_factory=Scene)
    note: str = ""
    other: Scene | None = None


def test_what_is_written_beside_the_fields_may_lie_deeper_have_another_name_or_be_left_out():
    assert Drawing().to_dict() == {"schema": 2, "other": None, "size": 3}
    told = Drawing(note="x", other=Scene(path=Path("p"))).to_dict()
    assert told["note"] == "x" and told["mine"] == "p"
    assert Drawing.from_dict({"schema": 1, "note": "x", "size": 3, "mine": "p"}).note == "x"


@pytest.mark.parametrize(
    ("schema", "words"),
    [(3, "reads up to 2: update sim2real"), (0, "from 1 on, not 0"), (True, "not True")],
)
def test_a_newer_schema_is_refused_before_anything_else(schema, words):
    with pytest.raises(Sim2RealError, match=words):
        Drawing.from_dict({"schema": schema, "unheard of": 3}, "the drawing")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["shapes", "colour", "mode", "limit", "from", "path", "counts", "either"])


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no reason to fail
@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_any_data_make_a_scene_or_are_a_clear_error(data):
    try:
        found = of_plain(Scene, data)
    except Sim2RealError as error:
        assert "\n" not in str(error)
    else:
        json.dumps(plain(found), allow_nan=False)
