"""Pages call things by the names they have: files, classes, functions and their arguments, links.

The code is read: a name counts as known where the source of the package, of the benchmarks or of
the examples has it. Functions that are called stand at a room's front door, or belong to a class.
"""

import ast
import importlib
import importlib.util
import re
from collections import defaultdict

import pytest

import sim2real
from sim2real.cli.verbs import VERBS
from tests.doc_pages import PAGES, anchors, links, name_of, spans
from tests.repository import ROOT
from tests.test_architecture import FLOOR, FLOORS

FOREIGN = {
    "Any": "Python",
    "Batch": "MuJoCo",
    "CompressedImage": "ROS",
    "Image": "ROS",
    "VecEnv": "rsl_rl",
    "timestamp_us": "a log",
    "base_position": "recordings of a Kinova",
    "input_volts": "recordings of an XL330",
    "Double_VRepBullet283": "recordings of a Kinova",
    "chirp_sweep": "recordings of an SO-101",
    "static_holding": "recordings of an SO-101",
    "prbs_excitation": "recordings of an SO-101",
}
"""Names of others that pages tell, and whose they are."""
FILES = r"(arrow|html|json|mp4|npz|onnx|png|toml|xml|csv)"
ROOMS = {room for room in FLOOR if (ROOT / "src" / "sim2real" / room).is_dir()}
OBJECTS = ("worlds", "twin")
"""Rooms by whose names pages also call an object."""
PLACES = ("benchmarks", "docs", "examples", "scripts", "src", "tests", *ROOMS)


def shown(kind):
    """What all pages show, as parameters of a test."""
    return [pytest.param(one, id=one.name) for page in PAGES for one in kind(page)]


class Names:
    """What the source calls things."""

    def __init__(self):
        self.classes: dict[str, set[str]] = defaultdict(set)
        """What each class has: methods, properties and fields."""
        self.functions: dict[str, set[str]] = defaultdict(set)
        """Arguments of all functions of a name; `**` where one takes any."""
        self.text = ""
        for place in ("src", "benchmarks", "examples"):
            for path in sorted((ROOT / place).rglob("*.py")):
                self.text += path.read_text(encoding="utf-8")
                self._read(ast.parse(path.read_text(encoding="utf-8")))
        self.text += "".join(path.read_text() for path in (ROOT / "examples").rglob("*.toml"))
        self.words = set(re.findall(r"\w+", self.text))
        self.members = set().union(*self.classes.values())
        rooms = [importlib.import_module(f"sim2real.{room}") for room in sorted(ROOMS)]
        self.public = set(sim2real.__all__).union(*(getattr(r, "__all__", ()) for r in rooms))
        """Names at the front doors of rooms."""

    def _read(self, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                self.functions[node.name] |= {one.arg for one in given}
                self.functions[node.name] |= {"**"} if node.args.kwarg else set()
            elif isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        self.classes[node.name].add(part.target.id)
                    elif isinstance(part, ast.FunctionDef):
                        self.classes[node.name].add(part.name)
                self.classes[node.name] |= set()

    def arguments(self, name: str) -> set[str] | None:
        """What may be given by name to a class, or to a function that is public or a method."""
        if name in self.classes:
            return self.classes[name] | self.functions["__init__"]
        if name not in self.public and name not in self.members:
            return None
        found = self.functions[name]
        return found | self.members if "**" in found else found


NAMES = Names()


def wrong(text: str) -> str:
    """What is wrong with code in a sentence; '' if nothing is."""
    if re.fullmatch(rf"[\w.-]+\.{FILES}", text):
        known = text in NAMES.text or text.partition(".")[0] in NAMES.words
        return "" if known or (ROOT / text).exists() else "no file is called so"
    if re.fullmatch(r"[\w./-]+/[\w./-]*", text) and text.partition("/")[0] in PLACES:
        known = text.removesuffix("/NAME")
        there = any((base / known).exists() for base in (ROOT, ROOT / "src" / "sim2real"))
        # What a bundle or a data set holds may lie in a folder that is called like a room.
        foreign = text.partition("/")[0] in ROOMS and not text.endswith(".py")
        return "" if there or foreign else "there is no such file"
    call = re.fullmatch(r"([\w.]+)\((.*)\)( -> .*)?", text)
    if call:
        return wrong_call(call[1], call[2])
    if re.fullmatch(r"\w+(\.\w+)+", text):
        return wrong_dotted(text)
    if re.fullmatch(r"[A-Z][a-z]\w*", text):
        return "" if text in NAMES.classes or text in FOREIGN else "no class is called so"
    if re.fullmatch(r"[a-z]\w*_\w+", text):
        return "" if text in NAMES.words | set(FOREIGN) else "the code has no such name"
    return ""


def wrong_call(path: str, arguments: str) -> str:
    name = path.rpartition(".")[2]
    known = NAMES.arguments(name)
    if known is None:
        return f"there is no public function {name}"
    plain = re.sub(r"…|\.\.\.", "*_", arguments).replace("=*_", "=_")
    given = ast.parse(f"f({plain})", mode="eval").body.keywords
    unknown = [one.arg for one in given if one.arg and one.arg not in known]
    return f"{name} takes no {unknown}" if unknown else ""


def wrong_dotted(text: str) -> str:
    first, *rest = text.split(".")
    if first == "sim2real" or first in ROOMS or first == "benchmarks":
        module = text if first in ("sim2real", "benchmarks") else f"sim2real.{text}"
        if first in OBJECTS and rest[0] in NAMES.words:
            return ""
        known = resolves(module) or f'"{text}"' in NAMES.text
        return "" if known else "there is no such module, or nothing of it is called so"
    if first in NAMES.classes:
        return "" if rest[0] in NAMES.classes[first] else f"{first} has no {rest[0]}"
    return ""


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, _, attribute = name.rpartition(".")
    try:
        if importlib.util.find_spec(name):
            return True
    except ModuleNotFoundError:
        pass
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("span", shown(spans))
def test_what_a_page_names_is_there(span):
    assert not wrong(span.text), wrong(span.text)


@pytest.mark.parametrize("text", [
    "Closed", "measure_gap(twin, lgs=…)", "measure_gab(twin)", "gap.replays", "Bundle.opens",
    "robot.drift.rank", "tests/test_dcs.py", "cli/verb.py", "gapp.json", "sim2real.gap.Gab",
    "link_stop",
])  # fmt: skip
def test_a_wrong_name_is_found(text):
    assert wrong(text)


@pytest.mark.parametrize("link", shown(links))
def test_a_link_leads_somewhere(link):
    page = next(path for path in PAGES if name_of(path) == link.page)
    file, _, anchor = link.text.partition("#")
    target = (page.parent / file).resolve() if file else page
    assert target.exists()
    assert not anchor or anchor in anchors(target)


# --- Lists that are whole ---


def words_on(page: str) -> list[str]:
    """Code in sentences and tables of a page of docs/."""
    return [span.text for span in spans(ROOT / "docs" / page)]


def test_every_verb_stands_on_the_page_of_verbs():
    said = words_on("verbs.md")
    missing = [
        verb.words
        for verb in VERBS
        if not any(f"{text} ".startswith(f"sim2real {verb.words} ") for text in said)
    ]
    assert not missing


def test_every_public_name_stands_on_the_page_of_python():
    said = {re.split(r"[(.]", text)[0] for text in words_on("python.md")}
    assert not set(sim2real.__all__) - said


def test_every_room_stands_on_the_page_of_architecture_from_the_ground_up():
    said = [text[:-1] for text in dict.fromkeys(words_on("architecture.md")) if text[:-1] in ROOMS]
    assert sorted(said) == sorted(ROOMS)
    assert [FLOOR[room] for room in said] == sorted(FLOOR[room] for room in said)
    files = [room for floor in FLOORS for room in floor if room not in ROOMS]
    assert not {f"{room}.py" for room in files} - set(words_on("architecture.md"))


def test_every_page_is_linked_from_the_first():
    linked = {link.text.partition("#")[0] for link in links(ROOT / "README.md")}
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert not pages - linked
