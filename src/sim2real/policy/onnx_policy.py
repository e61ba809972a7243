"""An ONNX graph of somebody else as a policy: one graph from observation to action.

Its inputs go by name. An input that has the name of a feature gets that feature; a graph whose only
input has another name gets the whole observation. A graph that was exported for a batch of one is
run once for every robot.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Array, Ints, Reals
from sim2real.contract import Contract, ImageFeature, NumbersFeature, TextFeature
from sim2real.errors import Sim2RealError, explaining, nearest
from sim2real.policy.protocol import Features, PolicyAbilities

if TYPE_CHECKING:
    import onnxruntime

_OUTPUTS = ("action", "actions")
_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(uint8)": "uint8"}
_TEXT = "tensor(string)"


class OnnxPolicy:
    """The policy in an ONNX file, with a contract that was written for it."""

    def __init__(self, file: Path, contract: Contract) -> None:
        """A graph that does not fit the contract is a `Sim2RealError`."""
        self.contract = contract
        self._file = file
        with explaining(f"{file} cannot be read", OSError):
            self.graph = file.read_bytes()
        self.id = hashlib.sha256(self.graph + repr(contract).encode()).hexdigest()[:32]
        self._session = session_of(self.graph, str(file))
        self._whole = self._sees_whole()
        self.one_by_one = any(entry.shape[:1] == [1] for entry in self._session.get_inputs())
        """Whether the graph takes one robot at a time."""
        for entry in self._session.get_inputs():
            self._check(entry)
        self._output = self._chosen_output()
        shape = self._session.get_outputs()[self._output].shape
        single = len(shape) < 3 or shape[1] == 1
        self.abilities = PolicyAbilities(
            kind="an ONNX graph", repeatable=self._whole is not None and single
        )

    def start(self, robots: Ints, of: int) -> None:
        """A graph has no memory."""

    def act(self, features: Features) -> Reals:
        """(rows, actions), or (rows, chunk, actions)."""
        given = {entry.name: self._given(entry, features) for entry in self._session.get_inputs()}
        if not self.one_by_one:
            return self._run(given)
        rows = range(len(features))
        return np.concatenate(
            [self._run({k: v[row : row + 1] for k, v in given.items()}) for row in rows]
        )

    def _run(self, given: dict[str, Array]) -> Reals:
        found: Reals = self._session.run(None, given)[self._output]
        return found

    def _sees_whole(self) -> str | None:
        """Name of the input that gets the whole observation; None where features go by name."""
        inputs = self._session.get_inputs()
        known = {feature.name for feature in self.contract.features}
        if len(inputs) == 1 and inputs[0].name not in known:
            return str(inputs[0].name)
        return None

    def _check(self, entry: onnxruntime.NodeArg) -> None:
        """Refuse an input that the contract does not have, or has in another shape or type."""
        features = {feature.name: feature for feature in self.contract.features}
        if entry.name != self._whole and entry.name not in features:
            raise Sim2RealError(
                f"{self._file} has an input {entry.name!r}, which the contract does not name"
                f"{nearest(entry.name, features)}"
            )
        feature = features.get(entry.name)
        text = isinstance(feature, TextFeature)
        if text != (entry.type == _TEXT) or (not text and entry.type not in _TYPES):
            raise Sim2RealError(f"{self._file}: input {entry.name!r} takes {entry.type}")
        wanted: tuple[int, ...] = ()
        if feature is None:
            wanted = (self.contract.input_width,)
        elif isinstance(feature, NumbersFeature):
            wanted = (feature.width,)
        elif isinstance(feature, ImageFeature):
            wanted = feature.shape
        there = entry.shape[1:]
        fixed = [have in (want, None) or isinstance(have, str)
                 for have, want in zip(there, wanted, strict=False)]  # fmt: skip
        if not text and (len(there) != len(wanted) or not all(fixed)):
            raise Sim2RealError(
                f"{self._file}: input {entry.name!r} takes {_sizes(there)} numbers a robot, but the"
                f" contract gives {_sizes(wanted)}"
            )

    def _given(self, entry: onnxruntime.NodeArg, features: Features) -> Array:
        if entry.name in features.texts:
            return np.array(features.texts[entry.name], dtype=object).reshape(len(features))
        if entry.name == self._whole:
            found: Array = features.numbers
        elif entry.name in features.images:
            found = features.images[entry.name]
        else:
            found = features.past(entry.name).reshape(len(features), -1)
        return np.ascontiguousarray(found, dtype=_TYPES[entry.type])

    def _chosen_output(self) -> int:
        """Place of the output with the action."""
        names = [output.name for output in self._session.get_outputs()]
        for name in _OUTPUTS:
            if name in names:
                return names.index(name)
        if len(names) > 1:
            raise Sim2RealError(
                f"{self._file} has outputs {', '.join(names)}: call the one with the action"
                " 'action'"
            )
        return 0


def session_of(graph: bytes, where: str) -> onnxruntime.InferenceSession:
    """A graph, ready to run; one that is damaged is a `Sim2RealError`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread: a small network is done before a pool wakes up.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    with explaining(f"{where} cannot be run"):
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _sizes(shape: tuple[int, ...] | list[int | str]) -> str:
    return " x ".join(str(size) for size in shape) or "no"
