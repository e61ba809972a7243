"""Messages of an MCAP channel decoded into tables, by the encoding that the channel states.

A table holds numbers, arrays, texts, bytes and tables of these by field. JSON needs no schema;
Protobuf and ROS 2 messages are decoded by the definitions in the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from google.protobuf import (
    descriptor_database,
    descriptor_pb2,
    descriptor_pool,
    message,
    message_factory,
)
from google.protobuf.descriptor import FieldDescriptor

from sim2real.data.formats.mcap import ros2
from sim2real.data.formats.mcap.records import McapChannel
from sim2real.errors import explaining

Decoder = Callable[[bytes], dict[str, object]]


def decoder_of(channel: McapChannel) -> Decoder | str:
    """The decoder of the channel's messages, or the encoding if it is unknown.

    A damaged schema is a `Sim2RealError`.
    """
    name, schema = channel.schema_name, channel.schema_encoding
    if channel.encoding == "json":
        return decode_json
    if channel.encoding == "protobuf" and schema == "protobuf":
        return _protobuf_decoder(name, channel.schema)
    if channel.encoding == "cdr" and schema in ("ros2msg", "ros2idl"):
        with explaining(f"the definition of {name} is not text", UnicodeDecodeError):
            types = ros2.parse_types(name, schema, channel.schema.decode("utf-8"))
        return lambda data: ros2.decode(data, name, types)
    written = channel.encoding + (f" with a {schema} schema" if schema else "")
    return written or "unstated"


def decode_json(data: bytes) -> dict[str, object]:
    """The object in a JSON message; any other value is put under 'value'."""
    with explaining("a message is not JSON", ValueError, RecursionError):
        found = json.loads(data)
    return found if isinstance(found, dict) else {"value": found}


def _protobuf_decoder(name: str, descriptors: bytes) -> Decoder:
    with explaining(f"the definition of {name} is damaged"):
        files = descriptor_database.DescriptorDatabase()
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
            files.Add(file)
        pool = descriptor_pool.DescriptorPool(files)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def decode(data: bytes) -> dict[str, object]:
        with explaining(f"a message of {name} is damaged"):
            return _table(kind.FromString(data))

    return decode


def _table(found: message.Message) -> dict[str, object]:
    """A Protobuf message as a table, without absent optional fields."""
    table: dict[str, object] = {}
    for field in found.DESCRIPTOR.fields:
        value = getattr(found, field.name)
        nested = field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP)
        if field.is_repeated:
            if nested:
                continue  # maps and lists of messages have no fixed length
            number = field.cpp_type != FieldDescriptor.CPPTYPE_STRING
            table[field.name] = np.array(value) if number and len(value) else list(value)
        elif nested:
            if found.HasField(field.name):
                table[field.name] = _table(value)
        elif not field.has_presence or found.HasField(field.name):
            table[field.name] = value
    return table
