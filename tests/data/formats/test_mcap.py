"""MCAP: our own files come back as they were, and recordings of others are read rightly."""

import base64
import io
import json
import logging
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mcap.writer import CompressionType, Writer
from mcap_ros2.writer import Writer as RosWriter
from PIL import Image
from rosbags.typesys import Stores, get_typestore

from sim2real.data import Episode, Provenance, Signal, Video
from sim2real.data.formats import write_episodes
from sim2real.data.formats.mcap import ros2
from sim2real.data.formats.mcap.read import read_mcap
from sim2real.data.formats.mcap.write import write_mcap
from sim2real.errors import Sim2RealError
from tests.data.formats.test_lerobot import pictures
from tests.format_faults import MEMORY_LIMIT_BYTES, _peak_bytes, mutations, survives

BASE = Provenance(kind="real", site="lab")
START = 1_700_000_000_000_000_000
STEP = 10_000_000

HEADER = """std_msgs/Header header
{}
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
JOINTS = HEADER.format("string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort")
IMAGE = HEADER.format(
    "uint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data"
)
PACKED = HEADER.format("string format\nuint8[] data")
IMU = (
    HEADER.format(
        "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance # row major\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    )
    + """================================================================================
MSG: geometry_msgs/Quaternion
float64 x 0
float64 y 0
float64 z 0
float64 w 1
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
)


def stamp(index: int, *, late_ns: int = 0) -> dict:
    ns = START + index * STEP - late_ns
    return {"stamp": {"sec": ns // 10**9, "nanosec": ns % 10**9}, "frame_id": "base"}


def write_json(
    file: Path, topics: dict[str, list], *, compression=CompressionType.ZSTD, **options
) -> Path:
    """A recording of JSON messages, one every 10 ms a topic."""
    with file.open("wb") as stream:
        writer = Writer(stream, compression=compression, **options)
        writer.start()
        numbers = {}
        for topic in topics:
            schema = writer.register_schema(topic, "jsonschema", b'{"type": "object"}')
            numbers[topic] = writer.register_channel(topic, "json", schema)
        for index in range(max(map(len, topics.values()))):
            for topic, messages in topics.items():
                if index < len(messages):
                    at = START + index * STEP
                    data = json.dumps(messages[index]).encode()
                    writer.add_message(numbers[topic], at, data, at)
        writer.finish()
    return file


def write_ros(file: Path, topics: dict[str, tuple[str, str, list]]) -> Path:
    """A ROS 2 recording; the encoder is that of mcap-ros2-support."""
    with file.open("wb") as stream:
        writer = RosWriter(stream)
        for topic, (name, text, messages) in topics.items():
            schema = writer.register_msgdef(name, text)
            for index, message in enumerate(messages):
                at = START + index * STEP
                writer.write_message(topic, schema, message, at, at)
        writer.finish()
    return file


def episode() -> Episode:
    rng = np.random.default_rng(1)
    times = np.arange(20) * 0.02
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, 0.1, 1e308, 1 / 3])
    unusual = np.frombuffer(struct.pack("<Q", 0xFFF8000000000123), "<f8")
    values = np.concatenate([special, unusual])
    channels = {
        "q": Signal(times, rng.normal(size=(20, 3)), "rad", 50.0),
        "odd": Signal(np.array([5.0, -3.0, 5.0] + [0.1] * 8), values, "N m"),
        "small": Signal(times[:4], np.array([[[0.1]], [[2]], [[np.nan]], [[4]]], "f4")),
        "half": Signal(times[:2], np.array([0.1, np.inf], "f2")),
        "big": Signal(times[:2], np.array([2**64 - 1, 0], "u8")),
        "flag": Signal(times[:2], np.array([True, False])),
        "a/b.c": Signal(times[:2], np.array([[1, -2], [3, 4]], "i2")),
        "none": Signal([], np.zeros((0, 2))),
        "camera": Video.encode(times[::2], pictures(10), stated_hz=25.0),
    }
    return Episode(channels, Provenance(kind="simulated", task="reach", seed=3), "failure")


def test_what_was_written_comes_back_with_the_same_id(tmp_path):
    one = episode()
    write_mcap(tmp_path / "one.mcap", [one])
    (found,) = read_mcap(tmp_path / "one.mcap", base=BASE)
    assert found.id == one.id


def test_many_episodes_are_a_folder_and_none_are_nothing(tmp_path):
    episodes = [episode(), episode().derive("again")]
    write_mcap(tmp_path / "many", episodes)
    files = sorted((tmp_path / "many").iterdir())
    found = {e.id for file in files for e in read_mcap(file, base=BASE)}
    assert found == {e.id for e in episodes}
    for path in ("x.mcap", "x"):
        with pytest.raises(Sim2RealError, match="no episode"):
            write_episodes(tmp_path / path, [], format="mcap")
    with pytest.raises(Sim2RealError, match="to write several"):
        write_mcap(tmp_path / "x.mcap", episodes)
    assert [p.name for p in tmp_path.iterdir()] == ["many"]


@settings(deadline=None, max_examples=60)
@given(
    hnp.arrays(
        st.sampled_from(["f8", "f4", "f2", "i8", "u8", "i1", "?"]),
        hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
    ),
    st.data(),
)
def test_any_numbers_survive(tmp_path_factory, values, data):
    times = data.draw(hnp.arrays("f8", len(values)))
    one = Episode({"x": Signal(times, values)}, BASE)
    file = tmp_path_factory.mktemp("any") / "x.mcap"
    write_mcap(file, [one])
    (found,) = read_mcap(file, base=BASE)
    assert found.id == one.id


def test_other_software_can_read_what_we_write(tmp_path):
    from mcap.reader import make_reader

    write_mcap(tmp_path / "one.mcap", [episode()])
    with (tmp_path / "one.mcap").open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        rows = [(c.topic, json.loads(m.data)) for _, c, m in reader.iter_messages(topics=["/q"])]
        names = [a.name for a in reader.iter_attachments()]
    assert len(rows) == 20 and names == ["camera.mp4"]
    np.testing.assert_array_equal([r["value"] for _, r in rows], episode()["q"].values)


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("chunked", [True, False])
def test_json_fields_become_channels(tmp_path, compression, chunked):
    arm = [
        {
            "q": [0.1 * i, 2],
            "force": {"x": i / 3},
            "name": "arm",
            "on": i > 2,
            "n": i,
            "list": [1] * i,
        }
        for i in range(6)
    ]
    file = write_json(
        tmp_path / "a.mcap", {"/arm": arm, "/t 1": [7.5, 8]}, compression=compression,
        use_chunking=chunked, chunk_size=200,
    )  # fmt: skip
    (found,) = read_mcap(file, base=BASE)
    assert sorted(found.channels) == ["arm/force.x", "arm/n", "arm/on", "arm/q", "t_1/value"]
    np.testing.assert_array_equal(found["arm/q"].values, [m["q"] for m in arm])
    np.testing.assert_array_equal(found["arm/force.x"].values, [i / 3 for i in range(6)])
    np.testing.assert_array_equal(found["arm/q"].times, np.arange(6) * STEP * 1e-9)
    assert found["arm/on"].values.dtype == bool and found["arm/n"].values.dtype == np.int64
    assert found.provenance.site == "lab" and found.provenance.source.startswith("a.mcap sha256:")
    assert found.provenance.calibration["clocks"]["/arm"] == "log_time"
    assert found.provenance.calibration["start_unix_ns"] == START


def test_what_is_left_out_is_said(tmp_path, caplog):
    messages = [{"q": 1.0, "word": "x", "list": [1] * i} for i in range(1, 4)]
    file = write_json(tmp_path / "a.mcap", {"/a": messages})
    with caplog.at_level(logging.WARNING):
        list(read_mcap(file, base=BASE))
    assert "word" in caplog.text and "list" in caplog.text


@pytest.mark.parametrize(("late_ns", "clock"), [(3_000_000, "header.stamp"), (10**14, "log_time")])
def test_the_stamp_of_a_message_counts_where_it_can_be_right(tmp_path, late_ns, clock):
    messages = [{"header": stamp(i, late_ns=late_ns), "q": i} for i in range(5)]
    (found,) = read_mcap(write_json(tmp_path / "a.mcap", {"/a": messages}), base=BASE)
    late_s = 0.003 if clock == "header.stamp" else 0.0
    np.testing.assert_allclose(found["a/q"].times, np.arange(5) * 0.01 - late_s, atol=1e-12)
    assert found.provenance.calibration["clocks"] == {"/a": clock}
    assert list(found.channels) == ["a/q"]


def descriptors() -> bytes:
    """The messages `test.Arm` and `test.Force`, with the time stamp of Protobuf itself."""
    files = descriptor_pb2.FileDescriptorSet()
    arm = files.file.add(name="arm.proto", package="test", syntax="proto3")
    arm.dependency.append("google/protobuf/timestamp.proto")
    stamp_file = files.file.add()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp_file)
    force = arm.message_type.add(name="Force")
    force.field.add(name="x", number=1, type=1, label=1)
    message = arm.message_type.add(name="Arm")
    kind = ".google.protobuf.Timestamp"
    message.field.add(name="timestamp", number=1, type=11, label=1, type_name=kind)
    message.field.add(name="q", number=2, type=1, label=3)
    message.field.add(name="count", number=3, type=5, label=1)
    message.field.add(name="word", number=4, type=9, label=1)
    message.field.add(name="force", number=5, type=11, label=1, type_name=".test.Force")
    message.field.add(name="next", number=6, type=11, label=1, type_name=".test.Arm")
    return files.SerializeToString()


def write_protobuf(file: Path, count: int = 5) -> Path:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for entry in reversed(descriptor_pb2.FileDescriptorSet.FromString(descriptors()).file):
        pool.Add(entry)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Arm"))
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        schema = writer.register_schema("test.Arm", "protobuf", descriptors())
        channel = writer.register_channel("/arm", "protobuf", schema)
        for index in range(count):
            at = START + index * STEP
            message = kind(q=[index, index / 3], count=index, word="x")
            message.force.x = -index
            message.timestamp.FromNanoseconds(at - 1_000_000)
            writer.add_message(channel, at, message.SerializeToString(), at)
        writer.finish()
    return file


def test_protobuf_is_decoded_by_the_descriptors_in_the_file(tmp_path):
    (found,) = read_mcap(write_protobuf(tmp_path / "a.mcap"), base=BASE)
    assert sorted(found.channels) == ["arm/count", "arm/force.x", "arm/q"]
    np.testing.assert_array_equal(found["arm/q"].values, [[i, i / 3] for i in range(5)])
    np.testing.assert_array_equal(found["arm/count"].values, np.arange(5))
    np.testing.assert_allclose(found["arm/q"].times, np.arange(5) * 0.01 - 0.001, atol=1e-12)


def joint_state(index: int, names: tuple[str, ...] = ("a", "b")) -> dict:
    position = {"a": index * 0.1, "b": -index}
    return {
        "header": stamp(index),
        "name": list(names),
        "position": [position[name] for name in names],
        "velocity": [2.0] * len(names),
        "effort": [],
    }


def test_joint_states_have_units_and_keep_the_names_and_order_of_joints(tmp_path):
    messages = [joint_state(i, ("a", "b") if i % 2 == 0 else ("b", "a")) for i in range(6)]
    messages.append(joint_state(6, ("a",)))
    topics = {"/joint_states": ("sensor_msgs/msg/JointState", JOINTS, messages)}
    (found,) = read_mcap(write_ros(tmp_path / "a.mcap", topics), base=BASE)
    position = found["joint_states/position"]
    np.testing.assert_array_equal(position.values, [[i * 0.1, -i] for i in range(6)])
    assert position.unit == "rad" and found["joint_states/velocity"].unit == "rad/s"
    assert sorted(found.channels) == ["joint_states/position", "joint_states/velocity"]
    assert found.provenance.calibration["names"]["joint_states/position"] == ["a", "b"]


def imu(index: int) -> dict:
    vector = {"x": index, "y": 0.5, "z": 9.81}
    return {
        "header": stamp(index),
        "orientation": {"x": 0, "y": 0, "z": 0, "w": 1},
        "orientation_covariance": np.arange(9.0).tolist(),
        "angular_velocity": vector,
        "angular_velocity_covariance": [0.0] * 9,
        "linear_acceleration": vector,
        "linear_acceleration_covariance": [0.0] * 9,
    }


def test_an_imu_has_a_channel_a_number_and_a_vector_an_array(tmp_path):
    topics = {"/imu": ("sensor_msgs/msg/Imu", IMU, [imu(i) for i in range(4)])}
    (found,) = read_mcap(write_ros(tmp_path / "a.mcap", topics), base=BASE)
    assert found["imu/linear_acceleration.x"].unit == "m/s^2"
    np.testing.assert_array_equal(found["imu/linear_acceleration.x"].values, np.arange(4))
    assert found["imu/angular_velocity.y"].unit == "rad/s"
    assert found["imu/orientation_covariance"].shape == (9,)


def image(index: int, picture: np.ndarray, encoding: str) -> dict:
    height, width = picture.shape[:2]
    rows = picture.reshape(height, -1).view("u1")
    padded = np.pad(rows, ((0, 0), (0, 4)))
    return {
        "header": stamp(index), "height": height, "width": width, "encoding": encoding,
        "is_bigendian": 0, "step": padded.shape[1], "data": padded.tobytes(),
    }  # fmt: skip


def test_pictures_become_videos_and_depth_stays_exact(tmp_path):
    shown = pictures(6)
    depth = [np.arange(12, dtype="<u2").reshape(3, 4) + i for i in range(6)]
    coded = []
    for picture in shown:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "PNG")
        coded.append(buffer.getvalue())
    topics = {
        "/bgr": (
            "sensor_msgs/msg/Image",
            IMAGE,
            [image(i, np.ascontiguousarray(p[:, :, ::-1]), "bgr8") for i, p in enumerate(shown)],
        ),
        "/depth": (
            "sensor_msgs/msg/Image",
            IMAGE,
            [image(i, d, "16UC1") for i, d in enumerate(depth)],
        ),
        "/packed": (
            "sensor_msgs/msg/CompressedImage",
            PACKED,
            [{"header": stamp(i), "format": "png", "data": c} for i, c in enumerate(coded)],
        ),
        "/bayer": (
            "sensor_msgs/msg/Image",
            IMAGE,
            [image(i, p, "bayer_rggb8") for i, p in enumerate(shown)],
        ),
    }
    (found,) = read_mcap(write_ros(tmp_path / "a.mcap", topics), base=BASE)
    assert sorted(found.channels) == ["bgr", "depth", "packed"]
    np.testing.assert_array_equal(found["depth"].values, np.stack(depth))
    for name in ("bgr", "packed"):
        frames = list(found.videos[name].frames(-1, 9))
        np.testing.assert_allclose([t for t, _ in frames], np.arange(6) * 0.01, atol=1e-12)
        for (_, got), wanted in zip(frames, shown, strict=True):
            np.testing.assert_allclose(got[9, 9].astype(int), wanted[9, 9], atol=30)


@pytest.mark.parametrize("name", ["sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu",
                                  "geometry_msgs/msg/WrenchStamped", "nav_msgs/msg/Odometry",
                                  "std_msgs/msg/Float64MultiArray", "sensor_msgs/msg/LaserScan",
                                  "trajectory_msgs/msg/JointTrajectory",
                                  "tf2_msgs/msg/TFMessage", "std_msgs/msg/Empty"])  # fmt: skip
@pytest.mark.parametrize("order", ["little", "big"])
def test_messages_are_decoded_as_ros_itself_does(name, order):
    """The oracle is rosbags: its definitions and its encoder, on random values."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    rng = np.random.default_rng(0)
    text, _ = store.generate_msgdef(name, ros_version=2)
    types = ros2.parse_types(name, "ros2msg", text)
    message = filled_message(store, name, rng)
    data = bytes(store.serialize_cdr(message, name, little_endian=order == "little"))
    assert_same(ros2.decode(data, name, types), message)


def filled_message(store, name, rng):
    """A message of rosbags with random numbers in it."""
    kind = store.types[name]
    values = {}
    for field, (node, inside) in store.fielddefs[name][1]:
        values[field] = filled_field(store, node, inside, rng)
    return kind(**values)


def filled_field(store, node, inside, rng):
    label = node.name
    if label == "BASE":
        return filled_number(inside[0], rng)
    if label == "NAME":
        return filled_message(store, inside, rng)
    (kind, of), count = inside
    count = count if label == "ARRAY" else 3
    if kind.name == "BASE" and of[0] != "string":
        return np.array([filled_number(of[0], rng) for _ in range(count)], dtype=numpy_kind(of[0]))
    return [filled_field(store, kind, of, rng) for _ in range(count)]


def numpy_kind(name):
    return {"bool": "?", "octet": "u1", "byte": "u1", "char": "u1"}.get(name, name)


def filled_number(name, rng):
    if name == "string":
        return "text" * int(rng.integers(0, 4))
    if name == "bool":
        return bool(rng.integers(0, 2))
    if name.startswith("float"):
        return float(np.float32(rng.normal()))
    return int(rng.integers(0, 100))


def assert_same(found, message):
    for field in found:
        one, other = found[field], getattr(message, field)
        if isinstance(one, dict):
            assert_same(one, other)
        elif isinstance(one, list) and one and isinstance(one[0], dict):
            for a, b in zip(one, other, strict=True):
                assert_same(a, b)
        else:
            np.testing.assert_array_equal(one, other)


IDL = """================================================================================
IDL: test_msgs/msg/Arm
// a comment
#include "test_msgs/msg/Force.idl"
module test_msgs {
  module msg {
    module Arm_Constants { const int32 LIMIT = 3; };
    typedef double double__3[3];
    typedef test_msgs::msg::Force Force__2[2];
    @verbatim (language="comment", text="joints (all)")
    struct Arm {
      @unit ("rad") double__3 q;
      sequence<double> any;
      sequence<float, 4> few;
      string name;
      unsigned long count;
      boolean on;
      test_msgs::msg::Force force;
      test_msgs::msg::Force__2 forces;
      uint8 small;
    };
  };
};
================================================================================
IDL: test_msgs/msg/Force
module test_msgs { module msg { struct Force { double x; long long n; }; }; };
"""
MSG = """int32 LIMIT=3
float64[3] q
float64[] any
float32[<=4] few
string name
uint32 count
bool on
Force force
Force[2] forces
uint8 small
================================================================================
MSG: test_msgs/Force
float64 x
int64 n
"""


def test_idl_and_msg_say_the_same():
    name = "test_msgs/msg/Arm"
    one = ros2.parse_types(name, "ros2idl", IDL)
    other = ros2.parse_types(name, "ros2msg", MSG)
    assert one["test_msgs/Arm"] == other["test_msgs/Arm"]
    assert one["test_msgs/Force"] == other["test_msgs/Force"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Arm arm", "contains itself"),
        ("Other x", "not defined"),
        ("float64[99999999999999] x", "too many"),
        ("float64", "not a field"),
        ("; drop", "not a field"),
    ],
)
def test_a_definition_that_cannot_be_is_one_clear_error(text, words):
    with pytest.raises(Sim2RealError, match=words):
        ros2.parse_types("test_msgs/msg/Arm", "ros2msg", text)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("float64[] x", struct.pack("<I", 2**32 - 1)),
        ("Empty[] x\n" + "=" * 40 + "\nMSG: test_msgs/Empty\nfloat64[0] y", b"\xff" * 4),
        ("string x", struct.pack("<I", 2**31)),
        ("string[] x", struct.pack("<I", 2**31)),
        ("wstring x", b"\0" * 8),
        ("float64[999999999] x", b"\0" * 8),
    ],
)
def test_a_count_in_a_message_is_not_believed(text, data):
    types = ros2.parse_types("test_msgs/msg/Arm", "ros2msg", text)
    with pytest.raises(Sim2RealError, match="is damaged"):
        ros2.decode(b"\0\1\0\0" + data, "test_msgs/msg/Arm", types)


def test_elements_without_bytes_are_not_repeated_without_end():
    parts = "".join(f"{'=' * 40}\nMSG: t/T{i}\nT{i + 1}[50] x\n" for i in range(8))
    types = ros2.parse_types(
        "t/msg/A", "ros2msg", f"T0[50] x\n{parts}{'=' * 40}\nMSG: t/T8\nint8[0] y"
    )
    with pytest.raises(Sim2RealError, match="is damaged"):
        ros2.decode(b"\0\1\0\0" + bytes(100), "t/msg/A", types)


def test_a_recording_that_was_cut_off_is_read_up_to_there(tmp_path):
    messages = [{"q": float(i)} for i in range(400)]
    file = write_json(tmp_path / "a.mcap", {"/a": messages}, chunk_size=500)
    whole = file.read_bytes()
    lengths = set()
    for part in (0.3, 0.5, 0.6):
        file.write_bytes(whole[: int(part * len(whole))])
        (found,) = read_mcap(file, base=BASE)
        values = found["a/q"].values
        np.testing.assert_array_equal(values, np.arange(len(values)))
        assert found.provenance.process == "read up to where the file was cut off"
        lengths.add(len(values))
    assert len(lengths) == 3 and max(lengths) < 400
    file.write_bytes(whole[:40])
    with pytest.raises(Sim2RealError, match="before it is cut off"):
        list(read_mcap(file, base=BASE))


@pytest.mark.slow
def test_our_own_file_that_was_cut_off_names_the_episode_it_was(tmp_path):
    times = np.arange(40_000) / 1000
    signal = Signal(times, np.sin(times), "rad", 1000.0)
    one = Episode({**episode().channels, "long": signal}, episode().provenance)
    file = tmp_path / "a.mcap"
    write_mcap(file, [one])
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    (found,) = read_mcap(file, base=BASE)
    assert found.id == one.id, "only the summary is lost"
    file.write_bytes(whole[: len(whole) * 3 // 4])
    (found,) = read_mcap(file, base=BASE)
    assert found.provenance.parents == (one.id,) and found.provenance.seed == 3
    count = len(found["long"].times)
    assert 0 < count < 40_000 and found["long"].unit == "rad"
    np.testing.assert_array_equal(found["long"].values, signal.values[:count])


def chunk(data: bytes, size: int, compression: str) -> bytes:
    """An MCAP file of one chunk that says it unpacks to `size` bytes."""
    name = compression.encode()
    body = struct.pack("<QQQI", 0, 0, size, 0)
    body += struct.pack("<I", len(name)) + name + struct.pack("<Q", len(data)) + data
    magic = b"\x89MCAP0\r\n"
    return magic + struct.pack("<BQ", 6, len(body)) + body + struct.pack("<BQI", 15, 4, 0) + magic


def test_a_bomb_does_not_go_off(tmp_path):
    import lz4.frame
    import zstandard

    bomb = bytes(200 << 20)
    file = tmp_path / "a.mcap"
    for name, data in (("zstd", zstandard.compress(bomb)), ("lz4", lz4.frame.compress(bomb))):
        for size in (len(bomb), 100, 2**63):
            file.write_bytes(chunk(data, size, name))
            with pytest.raises(Sim2RealError, match=r"a\.mcap: a chunk"):
                list(read_mcap(file, base=BASE))
    file.write_bytes(chunk(zlib.compress(b"x"), 1, "zip"))
    with pytest.raises(Sim2RealError, match="compression 'zip' is not known"):
        list(read_mcap(file, base=BASE))


def test_what_is_not_understood_is_left_out_or_said(tmp_path):
    file = tmp_path / "a.mcap"
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        schema = writer.register_schema("x", "ros1msg", b"float64 x")
        channel = writer.register_channel("/old", "ros1", schema)
        writer.add_message(channel, 1, b"12345678", 1)
        writer.finish()
    with pytest.raises(Sim2RealError, match="'/old': its encoding, ros1 with a ros1msg schema"):
        list(read_mcap(file, base=BASE))


@pytest.mark.parametrize("content", [b"", b"x", b"\x89MCAP0\r\n", b"\x89MCAP0\r\n" * 4])
def test_what_is_no_recording_is_one_clear_error(tmp_path, content):
    file = tmp_path / "a.mcap"
    file.write_bytes(content)
    with pytest.raises(Sim2RealError, match=r"a\.mcap"):
        list(read_mcap(file, base=BASE))


def recordings(folder: Path) -> list[Path]:
    """Small recordings of every kind; most without checksums, which would hide what is inside."""
    folder.mkdir()
    joints = ("sensor_msgs/msg/JointState", JOINTS, [joint_state(i) for i in range(3)])
    images = ("sensor_msgs/msg/Image", IMAGE, [image(0, p[:8, :8], "rgb8") for p in pictures(2)])
    ros = write_ros(folder / "ros.mcap", {"/j": joints})
    shown = write_ros(folder / "images.mcap", {"/camera": images})
    idl = folder / "idl.mcap"
    with idl.open("wb") as stream:
        writer = Writer(stream, use_chunking=False, enable_crcs=False)
        writer.start()
        channel = writer.register_channel(
            "/arm", "cdr", writer.register_schema("test_msgs/msg/Arm", "ros2idl", IDL.encode())
        )
        writer.add_message(channel, START, b"\0\1\0\0" + bytes(120), START)
        writer.finish()
    messages = [{"header": stamp(i), "q": [0.1 * i, 2], "force": {"x": i}} for i in range(3)]
    plain = {"compression": CompressionType.NONE, "enable_crcs": False}
    files = [
        write_json(folder / "flat.mcap", {"/a": messages}, use_chunking=False, **plain),
        write_json(folder / "chunk.mcap", {"/a": messages}, **plain),
        write_json(folder / "lz4.mcap", {"/a": messages}, compression=CompressionType.LZ4),
        write_json(folder / "ros-json.mcap", like_ros(), use_chunking=False, **plain),
        write_protobuf(folder / "proto.mcap", 3),
    ]
    own = folder / "own.mcap"
    write_mcap(own, [Episode({"q": episode()["q"], "odd": episode()["odd"]}, BASE)])
    film = folder / "film.mcap"
    write_mcap(film, [Episode({"camera": episode().videos["camera"]}, BASE)])
    return [
        *files,
        ros,
        shown,
        idl,
        own,
        film,
        *(unpacked(f) for f in (ros, files[-1], own, shown)),
    ]


def like_ros() -> dict[str, list]:
    """JSON messages whose schemas have the names of ROS messages."""
    buffer = io.BytesIO()
    Image.fromarray(pictures(1)[0]).save(buffer, "PNG")
    coded = {"timestamp": {"sec": 1, "nsec": 2}, "format": "png"}
    coded["data"] = base64.b64encode(buffer.getvalue()).decode()
    raw = {"height": 2, "width": 2, "step": 6, "encoding": "rgb8"}
    raw["data"] = base64.b64encode(bytes(range(12))).decode()
    return {
        "sensor_msgs/msg/JointState": [joint_state(0), joint_state(1, ("b", "a"))],
        "foxglove/CompressedImage": [coded, coded],
        "foxglove/RawImage": [raw, raw],
    }


def test_json_may_follow_the_schemas_of_ros(tmp_path):
    (found,) = read_mcap(write_json(tmp_path / "a.mcap", like_ros()), base=BASE)
    position = found["sensor_msgs/msg/JointState/position"]
    assert position.unit == "rad" and position.values.tolist() == [[0, 0], [0.1, -1]]
    assert found.videos["foxglove/CompressedImage"].shape == (32, 48, 3)
    assert found.videos["foxglove/RawImage"].shape == (2, 2, 3)


def unpacked(file: Path) -> Path:
    """The same recording without chunks and checksums: damage reaches the messages."""
    from mcap.records import Attachment, Channel, Message, Metadata, Schema
    from mcap.stream_reader import StreamReader

    new = file.with_name(f"unpacked-{file.name}")
    with file.open("rb") as source, new.open("wb") as stream:
        writer = Writer(stream, use_chunking=False, enable_crcs=False)
        writer.start()
        for record in StreamReader(source).records:
            if isinstance(record, Schema):
                writer.register_schema(record.name, record.encoding, record.data)
            elif isinstance(record, Channel):
                writer.register_channel(record.topic, record.message_encoding, record.schema_id)
            elif isinstance(record, Metadata):
                writer.add_metadata(record.name, record.metadata)
            elif isinstance(record, Message):
                writer.add_message(record.channel_id, record.log_time, record.data, record.log_time)
            elif not isinstance(record, Attachment) and type(record).__name__ == "DataEnd":
                break
        writer.finish()
    return new


@pytest.mark.slow
def test_thousands_of_damaged_recordings_load_or_explain(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    files = recordings(tmp_path / "good")
    passed, before = 0, _peak_bytes()
    file = tmp_path / "damaged.mcap"
    for number, source in enumerate(files):
        for damaged in mutations(source.read_bytes(), 2_500 // len(files) + 1, number):
            file.write_bytes(damaged)
            passed += survives(lambda path: read_mcap(path, base=BASE), file, 5.0)
    assert _peak_bytes() - before < MEMORY_LIMIT_BYTES, "memory grows without bound"
    assert passed > 125, "most damage should not hide behind the first check"
