"""Malformed files never end in a traceback: they load, or they are one clear error."""

import random
from pathlib import Path

import pytest

from sim2real.errors import Sim2RealError
from sim2real.tasks import find_task
from sim2real.twin import Twin
from tests.conftest import SLIDER

VALUES = [
    "0", "-1", "1e308", "nan", "inf", '""', '"x"', "[]", "[1]", "[1, 2]", '["a", "b"]', "{}",
    "{ kind = 3 }", "{ kind = 'uniform' }", "true", "1979-05-27", "[[1]]", '"../../etc/passwd"',
]  # fmt: skip
KINDS = ["body", "joint", "geom", "pair", "actuator", "sensor", "option", "light", "camera",
         "object", "environment", "human", "site", "tendon", "material", "equality"]  # fmt: skip
THINGS = ["arm", "hinge", "elbow", "block", "*", "key", "front", "hinge_pos", "[", "?*"]
ATTRIBUTES = ["mass", "damping", "friction", "kp", "delay", "noise", "size", "pos[0]", "range[9]",
              "diffuse", "fovy", "timestep", "pseudo_inertia[3]", "stiffness", "name", "id",
              "type", "bodyid", "quat", "backlash", "gear", "force_limit"]  # fmt: skip
FIELDS = ["unit", "operation", "nominal", "bounds", "prior", "dimension"]


def assert_loads_or_explains(folder: Path) -> None:
    try:
        Twin.load(folder)
    except Sim2RealError as error:
        assert str(error) and "\n" not in str(error)


def assert_text_loads_or_explains(folder: Path, text: str) -> None:
    (folder / "twin.toml").write_text(text)
    try:
        assert_loads_or_explains(folder)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error


@pytest.mark.parametrize("seed", range(4))
def test_random_parameters_load_or_explain(make_twin, seed):
    rng = random.Random(seed)
    folder = make_twin("")
    for _ in range(100):
        lines = ['[twin]\nmodel = "model.xml"']
        for _ in range(rng.randint(1, 2)):
            path = f"{rng.choice(KINDS)}/{rng.choice(THINGS)}/{rng.choice(ATTRIBUTES)}"
            lines.append(f'[parameters."{path}"]')
            for field in rng.sample(FIELDS, rng.randint(0, 3)):
                lines.append(f"{field} = {rng.choice(VALUES)}")
        assert_text_loads_or_explains(folder, "\n".join(lines))


@pytest.mark.parametrize("seed", range(4))
def test_random_tables_load_or_explain(make_twin, seed):
    rng = random.Random(seed)
    folder = make_twin("")
    tables = ["twin", "effects", "events", "channels", "parameters", "effects.actuator",
              "effects.sensor.hinge_pos", "effects.joint.hinge", "events.push"]  # fmt: skip
    keys = ["name", "model", "base", "parent", "delay", "delay_max", "noise", "backlash", "encoder",
            "body", "kind", "force", "source", "scale", "static_friction", "hinge"]  # fmt: skip
    for _ in range(100):
        lines = []
        for table in rng.sample(tables, rng.randint(1, 4)):
            lines.append(f"[{table}]")
            if table == "twin":
                lines.append('model = "model.xml"')
            for key in rng.sample(keys, rng.randint(0, 3)):
                if f'{key} = "model.xml"' not in lines[-1]:
                    lines.append(f"{key} = {rng.choice(VALUES)}")
        assert_text_loads_or_explains(folder, "\n".join(lines))


@pytest.mark.parametrize("seed", range(3))
def test_mutated_files_load_or_explain(tmp_path, seed):
    rng = random.Random(seed)
    source = find_task("pendulum-swingup").twin
    folder = tmp_path / "twin"
    folder.mkdir()
    original = {name: (source / name).read_bytes() for name in ("twin.toml", "pendulum.xml")}
    for _ in range(80):
        for name, data in original.items():
            (folder / name).write_bytes(data)
        name = rng.choice(list(original))
        mutated = bytearray(original[name])
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(mutated))
            if rng.random() < 0.5:
                mutated[at] = rng.randrange(256)
            else:
                del mutated[at : at + rng.randrange(40)]
        (folder / name).write_bytes(mutated)
        assert_loads_or_explains(folder)


def test_a_model_that_is_only_noise_is_explained(make_twin):
    assert_loads_or_explains(make_twin("", SLIDER[: len(SLIDER) // 2]))
