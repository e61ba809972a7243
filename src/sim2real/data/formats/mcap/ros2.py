"""ROS 2 messages: parses definitions (.msg and .idl) and decodes CDR bytes by them.

No code is generated from a definition. Sizes in a message are checked against the bytes that are
left before anything is read, and arrays keep the type that was sent. No library does all of this:
mcap-ros2-support knows no IDL and believes any size, rosbags compiles code from the definitions.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Array
from sim2real.errors import Sim2RealError, explaining

_PRIMITIVES = {
    "bool": "?", "byte": "u1", "char": "u1",
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4",
    "int64": "i8", "uint64": "u8", "float32": "f4", "float64": "f8",
}  # fmt: skip
_IDL = {
    "boolean": "bool", "octet": "byte",
    "float": "float32", "double": "float64", "short": "int16", "long": "int32",
    "long long": "int64", "unsigned short": "uint16", "unsigned long": "uint32",
    "unsigned long long": "uint64",
}  # fmt: skip
_DEPTH_MAX = 32


@dataclass(frozen=True, kw_only=True)
class MessageField:
    """One field of a message type."""

    name: str
    type: str
    """A primitive, 'string', 'wstring', or another message as 'package/Name'."""
    count: int | None = 1
    """Length of an array; None for a sequence, 1 for a single value."""
    is_array: bool = False


Types = Mapping[str, list[MessageField]]
"""Fields of each message type, by 'package/Name'."""


def short_name(name: str) -> str:
    """'sensor_msgs/Imu' for 'sensor_msgs/msg/Imu'."""
    parts = re.split(r"/|::", name)
    return f"{parts[0]}/{parts[-1]}"


def parse_types(name: str, encoding: str, text: str) -> Types:
    """The message type `name` and all types it contains, from a schema in an MCAP file."""
    types: dict[str, list[MessageField]] = {}
    for kind in ("Time", "Duration"):
        types[f"builtin_interfaces/{kind}"] = [
            MessageField(name="sec", type="int32"),
            MessageField(name="nanosec", type="uint32"),
        ]
    pieces = re.split(r"^={20,}[ \t\r]*$", text, flags=re.MULTILINE)
    for number, piece in enumerate(pieces):
        own = name
        body = piece
        heading = re.match(r"\s*(?:MSG|IDL):\s*(\S+)", piece)
        if heading:
            own, body = heading[1], piece[heading.end() :]
        elif number:
            raise Sim2RealError(f"the definition of {name} has a part without a name")
        if encoding == "ros2idl":
            types.update(_parse_idl(body))
        else:
            types[short_name(own)] = _parse_msg(short_name(own).split("/")[0], body)
    _check(short_name(name), types, 0)
    return types


def _check(name: str, types: Types, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise Sim2RealError(f"message type {name} contains itself")
    if name not in types:
        raise Sim2RealError(f"message type {name} is not defined")
    for field in types[name]:
        if field.type not in _PRIMITIVES and field.type not in ("string", "wstring"):
            _check(field.type, types, depth + 1)


_LINE = re.compile(
    r"^(?P<type>[A-Za-z][\w/]*)(?:<=\d+)?(?P<array>\[(?P<bound><=)?(?P<count>\d*)\])?"
    r"\s+(?P<name>[A-Za-z]\w*)\s*(?P<rest>.*)$"
)


def _parse_msg(package: str, text: str) -> list[MessageField]:
    fields = []
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        found = _LINE.match(line)
        if not found:
            raise Sim2RealError(f"{line[:80]!r} is not a field of a message")
        if found["rest"].startswith("="):
            continue  # a constant takes no space
        kind = found["type"]
        if kind == "Header":
            kind = "std_msgs/Header"
        elif kind in ("time", "duration"):
            kind = f"builtin_interfaces/{kind.capitalize()}"
        elif kind not in _PRIMITIVES and kind not in ("string", "wstring"):
            kind = short_name(kind) if "/" in kind else f"{package}/{kind}"
        fields.append(_field(found["name"], kind, found["array"], found["count"], found["bound"]))
    return fields


def _field(
    name: str, kind: str, array: str | None, count: str | None, bound: str | None
) -> MessageField:
    if not array:
        return MessageField(name=name, type=kind)
    if not count or bound:
        return MessageField(name=name, type=kind, count=None, is_array=True)
    if len(count) > 9:
        raise Sim2RealError(f"field {name} is an array of {count[:20]} elements: too many")
    return MessageField(name=name, type=kind, count=int(count), is_array=True)


_NOISE = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|^\s*#[^\n]*', re.DOTALL | re.MULTILINE)
_ANNOTATION = re.compile(r"@\w+(?:\s*\((?:[^()]|\([^()]*\))*\))?")
_BLOCK = re.compile(r"(module|struct) (\w+)")
_SEQUENCE = re.compile(r"sequence ?< ?(.+?) ?(?:, ?\d+ ?)?>")
_DECLARATION = re.compile(
    r"(?P<alias>typedef )?(?P<type>.+?) ?\b(?P<name>\w+) ?(?:\[ ?(\d{1,9}) ?\])?"
)


def _parse_idl(text: str) -> dict[str, list[MessageField]]:
    """Structures of an IDL file; the only other type it may define is an array."""
    types: dict[str, list[MessageField]] = {}
    arrays: dict[str, tuple[str, int | None, bool]] = {}
    blocks: list[str] = []
    fields: list[MessageField] | None = None
    parts = re.split(r"([;{}])", _ANNOTATION.sub("", _NOISE.sub("", text)))
    for part, mark in zip(parts[::2], [*parts[1::2], ""], strict=True):
        words = " ".join(part.split())
        if mark == "{":
            block = _BLOCK.fullmatch(words)
            if block is None or fields is not None:
                raise Sim2RealError(f"IDL: {words[:40]!r} is not supported")
            blocks.append(block[2])
            if block[1] == "struct":
                fields = types[f"{blocks[0]}/{block[2]}"] = []
        elif mark == ";" and words and not words.startswith("const "):
            found = _DECLARATION.fullmatch(words)
            if found is None or bool(found["alias"]) == (fields is not None):
                raise Sim2RealError(f"IDL: {words[:40]!r} is not supported")
            kind, count, is_array = _idl_type(found["type"], blocks[0] if blocks else "", arrays)
            if found[4]:
                count, is_array = int(found[4]), True
            if fields is None:
                if not is_array:
                    raise Sim2RealError(f"IDL: typedef {found['name']} is not an array")
                arrays[found["name"]] = (kind, count, True)
            elif found["name"] != "structure_needs_at_least_one_member":
                fields.append(
                    MessageField(name=found["name"], type=kind, count=count, is_array=is_array)
                )
        elif mark != ";" and (words or bool(mark) != bool(blocks)):
            raise Sim2RealError("IDL: the definition ends early")
        elif mark == "}":
            blocks.pop()
            fields = None
    return types


def _idl_type(
    text: str, package: str, arrays: Mapping[str, tuple[str, int | None, bool]]
) -> tuple[str, int | None, bool]:
    """Type, count and whether it is an array."""
    if sequence := _SEQUENCE.fullmatch(text):
        kind, _, nested = _idl_type(sequence[1], package, arrays)
        if nested:
            raise Sim2RealError("IDL: a sequence of arrays is not supported")
        return kind, None, True
    text = re.sub(r"^(w?string) ?<[^<>]*>$", r"\1", text)
    kind = _IDL.get(text, text)
    if kind in _PRIMITIVES or kind in ("string", "wstring"):
        return kind, 1, False
    names = re.split(r" ?:: ?", kind)
    if names[-1] in arrays:
        return arrays[names[-1]]
    if not all(re.fullmatch(r"\w+", name) for name in names):
        raise Sim2RealError(f"IDL: {text[:40]!r} is not supported")
    return f"{names[0] if len(names) > 1 else package}/{names[-1]}", 1, False


def decode(data: bytes, name: str, types: Types) -> dict[str, object]:
    """The message in CDR `data` as a table of numbers, arrays, texts, bytes and tables of these."""
    with explaining(f"a message of {name} is damaged", struct.error, ValueError):
        return _Cdr(data).message(short_name(name), types)


class _Cdr:
    """Reads one message. Values are aligned to their size, from the end of the header on."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 4 or data[0] or data[1] not in (0, 1, 6, 7):
            raise ValueError("its encoding is not plain CDR")
        self.data = memoryview(data)[4:]
        self.order = "<" if data[1] & 1 else ">"
        self.align_max = 8 if data[1] < 2 else 4
        self.at = 0
        # Elements of zero bytes could be repeated endlessly; real messages have few.
        self.elements_left = 64 + len(data)

    def message(self, name: str, types: Types) -> dict[str, object]:
        self.elements_left -= 1
        if self.elements_left < 0:
            raise ValueError("more elements than bytes")
        fields = types[name]
        if not fields:
            self._take(1, 1)
        return {field.name: self._field(field, types) for field in fields}

    def _field(self, field: MessageField, types: Types) -> object:
        if not field.is_array:
            return self._single(field.type, types)
        count = self._count() if field.count is None else field.count
        if field.type in _PRIMITIVES:
            return self._numbers(_PRIMITIVES[field.type], count)
        if count > len(self.data) - self.at:
            raise ValueError(f"{field.name} has {count} elements, more than there are bytes")
        return [self._single(field.type, types) for _ in range(count)]

    def _single(self, kind: str, types: Types) -> object:
        if kind in _PRIMITIVES:
            return self._numbers(_PRIMITIVES[kind], 1)[0].item()
        if kind == "string":
            size = self._count()
            return bytes(self._take(size, 1)).rstrip(b"\0").decode("utf-8", errors="replace")
        if kind == "wstring":
            raise ValueError("wide strings are not supported")
        return self.message(kind, types)

    def _numbers(self, kind: str, count: int) -> Array:
        size = int(kind[1]) if kind != "?" else 1
        dtype = np.dtype("u1" if kind == "?" else f"{self.order}{kind}")
        values = np.frombuffer(self._take(size * count, size if count else 1), dtype)
        return values != 0 if kind == "?" else values

    def _count(self) -> int:
        return int(self._numbers("u4", 1)[0].item())

    def _take(self, size: int, align: int) -> memoryview:
        start = self.at + (-self.at % min(align, self.align_max))
        if size > len(self.data) - start:
            raise ValueError(f"{size} bytes are missing at byte {start}")
        self.at = start + size
        return self.data[start : self.at]
