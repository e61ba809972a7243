"""The records of an MCAP file, which may be damaged or truncated, one after the other.

Only the data section is read, in the order of recording: a file whose recorder crashed has no
summary, but is valid up to that point. The size that a record claims is checked before any memory
is allocated.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from mmap import mmap

import lz4.frame
import zstandard

from sim2real.errors import Sim2RealError

MAGIC = b"\x89MCAP0\r\n"
CHUNK_BYTES_MAX = 1 << 30
"""Most bytes one chunk may unpack to."""
_UNPACKED_FREE = 1 << 26
_UNPACKED_RATIO = 300
"""A file may unpack to this many times its own size; a small one to more."""
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _ATTACHMENT, _METADATA, _DATA_END = 3, 4, 5, 6, 9, 12, 15


@dataclass(frozen=True, kw_only=True)
class McapSchema:
    """The layout of a channel's messages."""

    name: str
    encoding: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class McapChannel:
    """A topic, and the encoding of its messages."""

    id: int
    topic: str
    encoding: str
    schema: McapSchema | None

    def same(self, other: McapChannel) -> bool:
        """Whether both are the same topic, whatever their numbers: each sender declares it anew."""
        return replace(self, id=0) == replace(other, id=0)


@dataclass(frozen=True, kw_only=True)
class McapMessage:
    """One message of a channel."""

    channel: McapChannel
    log_time_ns: int
    data: bytes


@dataclass(frozen=True, kw_only=True)
class McapAttachment:
    """A file inside the file."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class McapMetadata:
    """A named table of texts."""

    name: str
    values: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class CutOff:
    """The file is truncated here."""

    at: int
    """Number of valid bytes."""


Record = McapMessage | McapAttachment | McapMetadata | CutOff


def records(file: bytes | mmap, where: str) -> Iterator[Record]:
    """The records in the bytes of a file.

    A damaged record is a `Sim2RealError`; the last record of a truncated file is a `CutOff`.
    """
    if bytes(file[:8]) != MAGIC:
        raise Sim2RealError(f"{where} is not an MCAP file")
    reader = _RecordReader(where, _UNPACKED_FREE + _UNPACKED_RATIO * len(file))
    at = 8
    while True:
        if at + 9 > len(file):
            yield CutOff(at=at)
            return
        kind, size = struct.unpack_from("<BQ", file, at)
        if kind == 0:
            raise Sim2RealError(f"{where}: damaged at byte {at}: there is no record of kind 0")
        if size > len(file) - at - 9:
            yield CutOff(at=at)
            return
        if kind == _DATA_END:
            return
        try:
            # A copy: a mapped file with a view cannot be closed.
            data = memoryview(bytes(file[at + 9 : at + 9 + size]))
            yield from reader.read(kind, data, nested=False)
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise Sim2RealError(f"{where}: damaged at byte {at}: {error}") from None
        at += 9 + size


class _RecordReader:
    """Reads records, given the schemas and channels that they refer to by number."""

    def __init__(self, where: str, unpacked_max: int) -> None:
        self.where = where
        self.unpacked_left = unpacked_max
        self.schemas: dict[int, McapSchema] = {}
        self.channels: dict[int, McapChannel] = {}

    def read(self, kind: int, data: memoryview, *, nested: bool) -> Iterator[Record]:
        if kind == _MESSAGE:
            number, _, log_time, _ = struct.unpack_from("<HIQQ", data)
            if number not in self.channels:
                raise Sim2RealError(f"{self.where}: a message of the undeclared channel {number}")
            channel = self.channels[number]
            yield McapMessage(channel=channel, log_time_ns=log_time, data=bytes(data[22:]))
        elif kind == _SCHEMA:
            fields = _Fields(data, 2)
            (number,) = struct.unpack_from("<H", data)
            schema = McapSchema(name=fields.text(), encoding=fields.text(), data=fields.block("<I"))
            self.schemas[number] = schema
        elif kind == _CHANNEL:
            number, schema_number = struct.unpack_from("<HH", data)
            fields = _Fields(data, 4)
            topic, encoding = fields.text(), fields.text()
            if schema_number and schema_number not in self.schemas:
                raise Sim2RealError(f"{self.where}: topic {topic!r} has an undeclared schema")
            schema_found = self.schemas.get(schema_number)
            self.channels[number] = McapChannel(
                id=number, topic=topic, encoding=encoding, schema=schema_found
            )
        elif kind == _CHUNK and not nested:
            yield from self._chunk(data)
        elif kind == _ATTACHMENT and not nested:
            fields = _Fields(data, 16)
            name, media_type, content = fields.text(), fields.text(), fields.block("<Q")
            (stated,) = struct.unpack_from("<I", data, fields.at)
            if stated and stated != zlib.crc32(data[: fields.at]):
                raise Sim2RealError(f"{self.where}: attachment {name!r} is damaged")
            yield McapAttachment(name=name, media_type=media_type, data=content)
        elif kind == _METADATA and not nested:
            fields = _Fields(data, 0)
            yield McapMetadata(name=fields.text(), values=fields.table())

    def _chunk(self, data: memoryview) -> Iterator[Record]:
        size, stated = struct.unpack_from("<QI", data, 16)
        fields = _Fields(data, 28)
        compression, packed = fields.text(), fields.block("<Q")
        if size > CHUNK_BYTES_MAX or size > self.unpacked_left:
            raise Sim2RealError(f"{self.where}: a chunk claims to unpack to {size} bytes: too many")
        self.unpacked_left -= size
        content = self._unpacked(compression, packed, size)
        if len(content) != size or (stated and zlib.crc32(content) != stated):
            raise Sim2RealError(f"{self.where}: a chunk is damaged: its checksum does not match")
        inside, at = memoryview(content), 0
        while at < len(inside):
            kind, length = struct.unpack_from("<BQ", inside, at)
            if kind == 0 or length > len(inside) - at - 9:
                raise Sim2RealError(f"{self.where}: a chunk is damaged: a record does not fit")
            yield from self.read(kind, inside[at + 9 : at + 9 + length], nested=True)
            at += 9 + length

    def _unpacked(self, compression: str, packed: bytes, size: int) -> bytes:
        """The chunk's content; at most one byte more than it claims."""
        try:
            if compression == "zstd":
                with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
                    return stream.read(size + 1)
            if compression == "lz4":
                return bytes(
                    lz4.frame.LZ4FrameDecompressor().decompress(packed, max_length=size + 1)
                )
        except (zstandard.ZstdError, RuntimeError, EOFError, ValueError, MemoryError) as error:
            raise Sim2RealError(f"{self.where}: a chunk does not unpack: {error}") from None
        if compression:
            raise Sim2RealError(f"{self.where}: compression {compression!r} is not known")
        return packed


class _Fields:
    """Reads the texts, blocks and tables of one record; raises if the record is too short."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at

    def block(self, length: str) -> bytes:
        (size,) = struct.unpack_from(length, self.data, self.at)
        start = self.at + struct.calcsize(length)
        if size > len(self.data) - start:
            raise IndexError("a field is longer than its record")
        self.at = start + size
        return bytes(self.data[start : self.at])

    def text(self) -> str:
        return self.block("<I").decode("utf-8")

    def table(self) -> dict[str, str]:
        inside = _Fields(memoryview(self.block("<I")), 0)
        found: dict[str, str] = {}
        while inside.at < len(inside.data):
            key = inside.text()
            found[key] = inside.text()
        return found
