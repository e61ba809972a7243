"""Messages of an MCAP channel decoded into tables, by what the channel says they are written in.

A decoder gives a table of numbers, arrays, texts, bytes and tables of those: JSON as it is,
Protobuf by the descriptors in the file, ROS 2 by the definitions in the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from sim2real.data.formats.mcap import ros2
from sim2real.data.formats.mcap.records import McapChannel
from sim2real.errors import Sim2RealError

Decoder = Callable[[bytes], dict[str, Any]]


class NotUnderstood(Exception):  # noqa: N818
    """The channel is written in something this reader does not know."""


def decoder_of(channel: McapChannel) -> Decoder:
    """What decodes the channel's messages.

    Raises `NotUnderstood` for an encoding that is none of ours, and a `Sim2RealError` for a schema
    that is damaged.
    """
    schema = channel.schema
    if channel.encoding == "json":
        return _decode_json
    if channel.encoding == "protobuf" and schema and schema.encoding == "protobuf":
        return _protobuf_decoder(schema.name, schema.data)
    if channel.encoding == "cdr" and schema and schema.encoding in ("ros2msg", "ros2idl"):
        try:
            types = ros2.parse_types(schema.name, schema.encoding, schema.data.decode("utf-8"))
        except UnicodeDecodeError:
            raise Sim2RealError(f"the definition of {schema.name} is not text") from None
        return lambda data: ros2.decode(data, schema.name, types)
    written = channel.encoding + (f" with a {schema.encoding} schema" if schema else "")
    raise NotUnderstood(f"{written or 'nothing known'}")


def _decode_json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Sim2RealError(f"a message is not JSON: {error}") from None
    return found if isinstance(found, dict) else {"value": found}


def _protobuf_decoder(name: str, descriptors: bytes) -> Decoder:
    try:
        files = {f.name: f for f in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file}
        pool = descriptor_pool.DescriptorPool()
        _add(pool, files, set(), list(files))
        kind: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except (message.DecodeError, KeyError, TypeError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())[:200]
        raise Sim2RealError(f"the definition of {name} is damaged: {words}") from None

    def decode(data: bytes) -> dict[str, Any]:
        try:
            return _table(kind.FromString(data))
        except (message.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Sim2RealError(f"a message of {name} is damaged: {error}") from None

    return decode


def _add(
    pool: descriptor_pool.DescriptorPool, files: dict[str, Any], done: set[str], wanted: list[str]
) -> None:
    """Add files to the pool, each after those it imports."""
    for name in wanted:
        if name in files and name not in done:
            done.add(name)
            _add(pool, files, done, list(files[name].dependency))
            pool.Add(files[name])


def _table(found: Any) -> dict[str, Any]:
    """A Protobuf message as a table; a field that may be absent, and is, stays out."""
    described: Descriptor = found.DESCRIPTOR
    table: dict[str, Any] = {}
    for field in described.fields:
        value = getattr(found, field.name)
        nested = field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP)
        if field.is_repeated:
            if nested:
                continue  # tables by key and lists of messages have no fixed length
            number = field.cpp_type != FieldDescriptor.CPPTYPE_STRING
            table[field.name] = np.array(value) if number and len(value) else list(value)
        elif nested:
            if found.HasField(field.name):
                table[field.name] = _table(value)
        elif not field.has_presence or found.HasField(field.name):
            table[field.name] = value
    return table
