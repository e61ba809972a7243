"""The records of an MCAP file, which may be damaged or truncated, one after the other.

The `mcap` package reads the fields of a record. Its own readers are not used: they take a truncated
message for a whole one, and unpack a chunk to any size. Only the data section is read, in the order
of recording: a file whose recorder crashed has no summary, but is valid up to that point.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from mmap import mmap
from typing import NamedTuple

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Chunk, Message, Metadata, Schema

from sim2real.errors import Sim2RealError, explaining

MAGIC = b"\x89MCAP0\r\n"
CHUNK_BYTES_MAX = 1 << 30
"""Most bytes one chunk may unpack to."""
_UNPACKED_FREE = 1 << 26
_UNPACKED_RATIO = 300
"""A file may unpack to this many times its own size; a small one to more."""
_HEAD = struct.Struct("<BQ")


class McapChannel(NamedTuple):
    """A topic, and the encoding and layout of its messages; each sender declares it anew."""

    topic: str
    encoding: str
    schema_name: str = ""
    schema_encoding: str = ""
    schema: bytes = b""


class McapMessage(NamedTuple):
    """One message of a channel."""

    channel: McapChannel
    log_time_ns: int
    data: bytes


class CutOff:
    """The file ends here, in the middle of a record or before its end is declared."""


Record = McapMessage | Attachment | Metadata | CutOff


def records(file: bytes | mmap) -> Iterator[Record]:
    """The records in the bytes of a file.

    A damaged record is a `Sim2RealError`; the last record of a truncated file is a `CutOff`.
    """
    if bytes(file[:8]) != MAGIC:
        raise Sim2RealError("it is not an MCAP file")
    reader = _RecordReader(_UNPACKED_FREE + _UNPACKED_RATIO * len(file))
    at = len(MAGIC)
    try:
        for kind, body, end in _framed(file, at):
            if kind == Opcode.DATA_END:
                return
            yield from reader.read(kind, body)
            at = end
    except (struct.error, UnicodeDecodeError, EOFError) as error:
        raise Sim2RealError(f"it is damaged at byte {at}: {error}") from None
    if at + _HEAD.size <= len(file) and file[at] == 0:
        raise Sim2RealError(f"it is damaged at byte {at}: there is no record of kind 0")
    yield CutOff()


def _framed(file: bytes | mmap, at: int) -> Iterator[tuple[int, bytes, int]]:
    """Kind, content and end of each whole record."""
    while at + _HEAD.size <= len(file):
        kind, size = _HEAD.unpack_from(file, at)
        start, at = at + _HEAD.size, at + _HEAD.size + size
        if kind == 0 or at > len(file):
            return
        yield kind, file[start:at], at


class _RecordReader:
    """Reads records, given the schemas and channels that they refer to by number."""

    def __init__(self, unpacked_max: int) -> None:
        self.unpacked_left = unpacked_max
        self.schemas: dict[int, Schema] = {}
        self.channels: dict[int, McapChannel] = {}

    def read(self, kind: int, body: bytes, *, nested: bool = False) -> Iterator[Record]:
        fields = _Fields(body)
        if kind == Opcode.MESSAGE:
            message = Message.read(fields, len(body))
            if message.channel_id not in self.channels:
                raise Sim2RealError(f"a message is of the undeclared channel {message.channel_id}")
            yield McapMessage(self.channels[message.channel_id], message.log_time, message.data)
        elif kind == Opcode.SCHEMA:
            schema = Schema.read(fields)
            self.schemas[schema.id] = schema
        elif kind == Opcode.CHANNEL:
            channel = Channel.read(fields)
            self.channels[channel.id] = self._described(channel)
        elif kind == Opcode.CHUNK and not nested:
            yield from self._chunk(Chunk.read(fields))
        elif kind == Opcode.ATTACHMENT and not nested:
            attachment = Attachment.read(fields)
            end = fields.count - 4  # the checksum, which the package does not look at
            stated = int.from_bytes(body[end : fields.count], "little")
            if stated and stated != zlib.crc32(body[:end]):
                raise Sim2RealError(f"attachment {attachment.name!r} is damaged")
            yield attachment
        elif kind == Opcode.METADATA and not nested:
            yield Metadata.read(fields)

    def _described(self, channel: Channel) -> McapChannel:
        if not channel.schema_id:
            return McapChannel(channel.topic, channel.message_encoding)
        if channel.schema_id not in self.schemas:
            raise Sim2RealError(f"topic {channel.topic!r} has an undeclared schema")
        schema = self.schemas[channel.schema_id]
        return McapChannel(
            channel.topic, channel.message_encoding, schema.name, schema.encoding, schema.data
        )

    def _chunk(self, chunk: Chunk) -> Iterator[Record]:
        size = chunk.uncompressed_size
        if size > CHUNK_BYTES_MAX or size > self.unpacked_left:
            raise Sim2RealError(f"a chunk claims to decompress to {size} bytes, which is too much")
        self.unpacked_left -= size
        content = _unpacked(chunk.compression, chunk.data, size)
        stated = chunk.uncompressed_crc
        if len(content) != size or (stated and zlib.crc32(content) != stated):
            raise Sim2RealError("a chunk is damaged: its checksum does not match")
        read_to = 0
        for kind, body, end in _framed(content, 0):
            yield from self.read(kind, body, nested=True)
            read_to = end
        if read_to != size:
            raise Sim2RealError("a chunk is damaged: a record does not fit")


def _unpacked(compression: str, packed: bytes, size: int) -> bytes:
    """The chunk's content; at most one byte more than it claims."""
    with explaining("a chunk cannot be decompressed"):
        if compression == "zstd":
            with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
                return stream.read(size + 1)
        if compression == "lz4":
            return bytes(lz4.frame.LZ4FrameDecompressor().decompress(packed, max_length=size + 1))
    if compression:
        raise Sim2RealError(f"compression {compression!r} is not known")
    return packed


class _Fields(ReadDataStream):
    """Reads the fields of one record; a field that is longer than its record is an error."""

    def __init__(self, body: bytes) -> None:
        super().__init__(BytesIO(body))
        self._size = len(body)

    def read(self, length: int) -> bytes:
        if length > self._size - self.count:
            raise EOFError("a field is longer than its record")
        return super().read(length)
