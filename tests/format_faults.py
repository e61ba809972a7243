"""Damaged files for every format: an importer reads them rightly or says what is wrong.

`mutations` damages bytes the way disks, networks, editors and attackers do; for containers it also
damages what is inside and closes them again, so that checksums do not hide the content behind them.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import resource
import signal
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sim2real.data import Episode
from sim2real.errors import Sim2RealError

MEMORY_LIMIT_BYTES = 600 * 2**20
"""Growth of the process over a whole run of faults that counts as unbounded."""

_WORDS = [b"nan", b"inf", b"-1", b"1e999", b"", b'"', b"[", b"]", b"[[", b"{", b"}", b",", b"\n",
          b"null", b"true", b"\x00", b"\xff\xfe", b"99999999999999999999", b"0x1f", b"1_0", b"''",
          b"../../x", b"/etc/passwd", b"\xc3\xa9", b"=cmd()", b"[" * 3000, b"9" * 5000]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TOKEN = re.compile(rb"[A-Za-z_]{2,}|[\"'\[\]{},:\n]")
_NAMES = ["../x.npy", "/tmp/x.npy", "..\\x.npy", "x.npy", "a/b.npy", "", "\x00.npy", "x", "t.npy"]
_SIZES = [0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1]


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """`count` damaged copies of `data`, the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        found = data
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            found = _damaged(found, rng)
        yield found


def survives(read: Callable[[Path], Iterable[Episode]], path: Path, time_limit: float) -> bool:
    """Whether `read(path)` gives episodes; a one-line `Sim2RealError` that names it is fine.

    Anything else is an `AssertionError`: another exception, no words, several lines, or more than
    `time_limit` seconds.
    """
    started = time.monotonic()
    try:
        with _alarm(time_limit):
            episodes = list(read(path))
    except Sim2RealError as error:
        message = str(error)
        assert message.strip() and "\n" not in message, f"not one clear line: {message!r}"
        named = any(name in message for name in (path.name, path.stem, path.parent.name))
        assert named, f"names neither the file nor its folder: {message!r}"
        assert len(message) < 1000, f"too long to read: {message[:200]!r}…"
        return False
    except (KeyboardInterrupt, AssertionError):
        raise
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__} instead of a clear error: {error}") from error
    finally:
        took = time.monotonic() - started
        assert took < time_limit, f"took {took:.1f} s"
    assert all(isinstance(episode, Episode) for episode in episodes)
    return True


def survives_all(
    read: Callable[[Path], Iterable[Episode]],
    path: Path,
    count: int,
    seed: int,
    time_limit: float = 5.0,
) -> int:
    """How many of `count` damaged copies of the file at `path` could still be read.

    The copies take the file's place, so that files beside it are found; it is restored at the end.
    A copy that is not survived is left beside it as `<name>.fault`. Nothing may appear or vanish
    around the file, and memory must not grow without bound.
    """
    original = path.read_bytes()
    outside = sorted(path.parent.parent.rglob("*"))
    before = _peak_bytes()
    passed = 0
    try:
        for damaged in mutations(original, count, seed):
            path.write_bytes(damaged)
            try:
                passed += survives(read, path, time_limit)
            except AssertionError:
                path.with_name(path.name + ".fault").write_bytes(damaged)
                raise
    finally:
        path.write_bytes(original)
    assert sorted(path.parent.parent.rglob("*")) == outside, "a file was written or removed"
    assert _peak_bytes() - before < MEMORY_LIMIT_BYTES, "memory grows without bound"
    return passed


def _damaged(data: bytes, rng: random.Random) -> bytes:
    if data[:4] == b"PK\x03\x04" and rng.random() < 0.8:
        return _zip_damaged(data, rng)
    if data[:2] == b"\x1f\x8b" and rng.random() < 0.8:
        return _gzip_damaged(data, rng)
    text = b"\x00" not in data[:2000]
    kinds = [_flip, _flip, _splice, _cut, _size]
    return rng.choice([*kinds, _word, _word, _word, _line] if text else kinds)(data, rng)


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 4, 16))):
        if changed:
            at = rng.randrange(len(changed))
            changed[at] = rng.choice((changed[at] ^ (1 << rng.randrange(8)), rng.randrange(256)))
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _splice(data: bytes, rng: random.Random) -> bytes:
    """A chunk deleted, doubled, moved, zeroed, or made of noise."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 4, 8, 32, 128, 1024)))
    chunk, at = data[start:end], rng.randrange(len(data) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return data[:start] + data[end:]
    if kind == 1:
        return data[:end] + chunk * rng.choice((1, 2, 20)) + data[end:]
    if kind == 2:
        return data[:at] + chunk + data[at:]
    new = bytes(len(chunk)) if kind == 3 else rng.randbytes(len(chunk))
    return data[:start] + new + data[end:]


def _size(data: bytes, rng: random.Random) -> bytes:
    """A whole number somewhere replaced by one that lies about a size or a place."""
    width, code = rng.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
    if len(data) < width:
        return data
    # Sizes usually stand at even places.
    at = rng.randrange(0, len(data) - width + 1) // width * width
    value = struct.pack(rng.choice("<>") + code, rng.choice(_SIZES) & (256**width - 1))
    return data[:at] + value + data[at + width :]


def _word(data: bytes, rng: random.Random) -> bytes:
    """A number, a name or a bracket of a text replaced, or something put before it."""
    pattern = rng.choice((_NUMBER, _TOKEN))
    start = rng.randrange(len(data) + 1)
    found = pattern.search(data, start) or pattern.search(data)
    if found is None:
        return data + rng.choice(_WORDS)
    keep = rng.random() < 0.3
    return (
        data[: found.start()] + rng.choice(_WORDS) + data[found.start() if keep else found.end() :]
    )


def _line(data: bytes, rng: random.Random) -> bytes:
    """Lines of a text dropped, doubled, swapped or joined, or other line ends."""
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(other, lines[at])
    elif kind == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b" ", b"\n\n")))
    else:
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    return b"\n".join(lines)


def _gzip_damaged(data: bytes, rng: random.Random) -> bytes:
    try:
        inside = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return _flip(data, rng)
    return gzip.compress(_damaged(inside, rng), compresslevel=1, mtime=0)


def _zip_damaged(data: bytes, rng: random.Random) -> bytes:
    """The zip with one member damaged, renamed, doubled, dropped, or lying about its shape."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(name, file.read(name)) for name in file.namelist()]
    except Exception:
        return _flip(data, rng)
    if not members:
        return _flip(data, rng)
    at = rng.randrange(len(members))
    name, content = members[at]
    kind = rng.randrange(6)
    if kind == 0:
        members[at] = (rng.choice(_NAMES), content)
    elif kind == 1:
        members.append((rng.choice((name, rng.choice(_NAMES))), content))
    elif kind == 2:
        del members[at]
    elif kind == 3:
        members[at] = (name, _npy_lie(content, rng))
    else:
        members[at] = (name, _damaged(content, rng))
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as file:
        warnings.simplefilter("ignore")  # The same name twice is meant.
        for entry, inside in members:
            file.writestr(zipfile.ZipInfo(entry or "_"), inside)
    return buffer.getvalue()


def _npy_lie(content: bytes, rng: random.Random) -> bytes:
    """An array whose head claims another shape or type; its length is kept."""
    head = content[:128]
    shape = rng.choice((b"(99999999999,)", b"(0,)", b"(-1,)", b"(2, 99999999)", b"()", b"(1.5,)"))
    kind = rng.choice((b"'|O'", b"'<f8'", b"'<U9'", b"'|V8'", b"'<c16'", b"'<M8[s]'", b"'nope'"))
    if rng.random() < 0.5:
        changed = re.sub(rb"\([\d, ]*\)", shape, head)
    else:
        changed = re.sub(rb"'[<>|=][a-zA-Z]\d*'", kind, head)
    changed = changed[:-1].rstrip(b" ")
    return changed + b" " * max(0, len(head) - 1 - len(changed)) + b"\n" + content[128:]


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """A `TimeoutError` in the main thread when the block takes longer."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
