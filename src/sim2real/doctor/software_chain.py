"""The software between sensors and actuators, recomputed exactly: every difference is a fault.

readings -> observation -> action -> wanted -> command. Each link is recomputed from the one before
with the bundle's own graphs. Where the log differs, the relation of the two names the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from sim2real.arrays import Bools, Floats, Reals
from sim2real.contract import SOFT_START_S, ActionSpec
from sim2real.doctor.fault_naming import ExplainedColumns, explain, merged, named
from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.graph_interface import GraphInterface, InputColumn
from sim2real.doctor.signal_relations import (
    DEGREES,
    LONGEST_SHIFT,
    MIN_EXPLAINED,
    RelationKind,
    SignalRelation,
    alike,
    broken_columns,
    relate,
    same,
    search,
    shifted,
)
from sim2real.logs import ControlLog
from sim2real.units import counted

_LEAST_STEP = 0.7
"""Share of a step that a supervisor allows at least, after its soft start."""
_NEWLY_SATURATED_SHARE = 0.2
"""Share of actions brought to their limit above which they are saturated, not scaled."""


class SoftwareChain:
    """The links of the chain in one log."""

    def __init__(self, interface: GraphInterface, log: ControlLog) -> None:
        self._interface, self._log = interface, log
        contract = log.contract
        self._known = _followed(log)
        if log.spoilt is not None:  # the policy saw what was recorded, if anything
            self._known &= ~log.spoilt
        count = len(log.times)
        action = np.full((count, len(contract.actions)), np.nan)
        if log.action is not None:
            action[1:] = log.action[:-1]
            action[0] = 0.0
        command = np.vstack([np.full((1, log.command.shape[1]), np.nan), log.command[:-1]])
        goals = log.goals if log.goals is not None else np.zeros((count, 0))
        self._inputs = np.concatenate([log.readings, goals, action, command], axis=1)
        self._computed = interface.observe(self._inputs)
        self._seen = self._inputs
        self._frames: Floats | None = None
        """(periods, frame) the newest period of each observation."""
        if log.observation is not None:
            self._frames = log.observation[:, -contract.frame_width :]
        self._fed_back: list[Finding] = []
        self._misshown: list[Finding] = []
        self.notes: list[str] = []

    def findings(self) -> list[Finding]:
        """All breaks of the chain, from readings to commands."""
        found = self._observation()
        found += self._action(edited=bool(found or self._fed_back))
        found += self._command(found)
        # The last action and command are part of an observation, so their faults show there too;
        # the links that make them name them better, if they can.
        return merged(found or self._fed_back)

    def _observation(self) -> list[Finding]:
        frames, computed, rows = self._frames, self._computed, self._known
        if frames is None:
            self.notes.append("the log has no observation to check the readings against")
            return []
        if not broken_columns(frames, computed, rows):
            return []
        found = self._normalised(frames, computed, rows)
        if found:
            return found
        outer = explain(self._interface.outputs, frames, computed, rows)
        inner = self._given(frames, computed, rows)
        chosen = min((inner, outer), key=lambda e: e.cost)
        if chosen is inner:
            self._seen = self._corrected(frames, computed)
        self._misshown, _ = _by_origin(outer)
        self._fed_back, others = _by_origin(chosen)
        return others

    def _normalised(self, frames: Floats, computed: Floats, rows: Bools) -> list[Finding]:
        """Observations that were normalised outside the network, or denormalised."""
        if self._interface.normaliser is None:
            return []
        mean, scale = (part[-frames.shape[1] :] for part in self._interface.normaliser)
        for guess, how in (
            ((computed - mean) / scale, "normalised before the network, which normalises it again"),
            (computed * scale + mean, "denormalised with the normaliser's mean and deviation"),
        ):
            wrong = broken_columns(frames, guess, rows)
            if len(wrong) <= 0.1 * frames.shape[1]:
                share = float(same(frames, guess)[rows].mean())
                evidence = (
                    f"The logged observation is the contract's, {how}; this explains"
                    f" {100 * share:.0f} % of its numbers."
                )
                return [Finding(Fault.NORMALISER, ("observation",), evidence, share)]
        return []

    def _given(self, frames: Floats, computed: Floats, rows: Bools) -> ExplainedColumns:
        """The same difference, explained by other inputs of `observe`."""
        face = self._interface
        turned = self._turned(frames, rows)
        if turned is not None:
            return turned
        seen = self._corrected(frames, computed)
        groups = [column.group for column in face.inputs]
        relations = relate(
            np.where(face.solvable, self._inputs, 0.0), np.where(face.solvable, seen, 0.0),
            rows, groups,
        )  # fmt: skip
        left = broken_columns(frames, face.observe(seen), rows)
        if left:
            relations += self._searched(frames, seen, left, rows, groups)
            explained = {
                o
                for r in relations
                if r.kind is not RelationKind.UNKNOWN and not face.solvable[r.column]
                for o in np.flatnonzero(face.depends[:, r.column])
            }
            left = [o for o in left if o not in explained]
        return ExplainedColumns(face.inputs, relations, whole=not left)

    def _turned(self, frames: Floats, rows: Bools) -> ExplainedColumns | None:
        """Quaternions with their components in another order."""
        face = self._interface
        for group in {c.group for c in face.inputs if c.quaternion}:
            columns = [k for k, c in enumerate(face.inputs) if c.group == group]
            for turn in (1, -1):
                tried = self._inputs.copy()
                tried[:, columns] = np.roll(self._inputs[:, columns], turn, axis=1)
                if not broken_columns(frames, face.observe(tried), rows):
                    relations = [
                        SignalRelation(RelationKind.PERMUTED, k, columns[(n + turn) % 4], 1.0)
                        for n, k in enumerate(columns)
                    ]
                    return ExplainedColumns(face.inputs, relations)
        return None

    def _corrected(self, frames: Floats, computed: Floats) -> Floats:
        """The inputs of `observe`, as far as its linear outputs determine them."""
        face = self._interface
        off = np.nan_to_num(frames - computed)[:, face.linear] @ face.solve.T
        return self._inputs + np.where(face.solvable, off, 0.0)

    def _searched(
        self,
        frames: Floats,
        seen: Floats,
        left: list[int],
        rows: Bools,
        groups: list[str],
    ) -> list[SignalRelation]:
        """Relations of inputs that only nonlinear outputs show, such as an angle's sine."""
        face = self._interface
        found = []
        for column in np.flatnonzero(~face.solvable & face.depends[left].any(axis=0)):
            outputs = [o for o in left if face.depends[o, column]]
            others = [int(o) for o in np.flatnonzero(face.depends[:, column]) if o not in left]

            def error(
                guess: Floats, column: int = int(column), outputs: list[int] = outputs + others
            ) -> Floats:
                tried = seen.copy()
                tried[:, column] = guess
                off = np.abs(face.observe(tried) - frames)[:, outputs]
                return np.where(rows, off.max(axis=1), 0.0)

            wrong = rows & (error(seen[:, column]) > 2e-4)
            if not wrong.any():
                continue
            group = alike(groups, int(column))
            found.append(search(self._inputs, int(column), group, error, wrong))
        return found

    def _action(self, *, edited: bool) -> list[Finding]:
        log, face = self._log, self._interface
        if log.action is None:
            self.notes.append("the log has no action to check the network with")
            return []
        skipped = list(face.policy.missing_for("repeatable"))
        if skipped:
            self.notes += skipped
            return []
        frames = self._frames if self._frames is not None else self._computed
        rows = self._known & _past_known(frames, self._known, log.contract.history)
        if not rows.any():
            return []
        given = face.stacked(frames)
        if log.observation is not None and log.observation.shape[1] == given.shape[1]:
            given = log.observation

        def agrees(inputs: Floats) -> bool:
            return not broken_columns(log_action, _clipped(face.runtime.policy(inputs)), rows)

        log_action = log.action
        if agrees(given):
            return []
        if edited and agrees(face.stacked(self._computed)):
            # The network saw the right observation; only the logged one is wrong.
            self._fed_back = self._misshown or self._fed_back
            return []
        found = self._network(given, agrees, rows)
        if found:
            return found
        raw = face.runtime.policy(given).astype(float)
        columns = tuple(column for column in face.inputs if column.channel == "action")
        explained = explain(columns, log_action, _clipped(raw), rows)
        kinds = {relation.kind for relation in explained.relations}
        plain = {RelationKind.SHIFTED, RelationKind.PERMUTED, RelationKind.NEGATED}
        if not kinds & plain:
            found = _saturated(log_action, raw, rows, log.contract.actions)
            if found:
                return found
        if kinds <= {RelationKind.UNKNOWN}:
            shown = self._shown(frames, agrees)
            if shown:
                return shown
        if edited and RelationKind.UNKNOWN in kinds:
            return []
        return named(explained)

    def _network(
        self, given: Floats, agrees: Callable[[Floats], bool], rows: Bools
    ) -> list[Finding]:
        """Faults inside the network's own software: the order of its history, its normaliser."""
        face = self._interface
        history = face.contract.history
        parts = given.reshape(len(given), history, -1)
        gives = "The network gives the logged actions"
        if history > 1 and agrees(parts[:, ::-1].reshape(len(given), -1)):
            evidence = f"{gives} when its {history} periods are stacked newest first."
            return [Finding(Fault.HISTORY, ("observation",), evidence, 1.0)]
        if face.normaliser is not None:
            mean, scale = face.normaliser
            for guess, how in (
                (given * scale + mean, "without its normaliser"),
                ((given - mean) / scale, "with its normaliser applied twice"),
            ):
                if agrees(guess):
                    evidence = f"{gives} {how}, in all {int(rows.sum())} periods."
                    return [Finding(Fault.NORMALISER, ("policy",), evidence, 1.0)]
        return []

    def _shown(self, frames: Floats, agrees: Callable[[Floats], bool]) -> list[Finding]:
        """What the network saw instead of the logged observation."""
        for fault, where, how, tried in _misshown(frames, self._interface.outputs):
            if agrees(self._interface.stacked(tried)):
                evidence = f"The network gives the logged actions when {how}."
                return [Finding(fault, tuple(where), evidence, 0.95)]
        return []

    def _command(self, before: list[Finding]) -> list[Finding]:
        """The wanted command from the action, and the sent one from the wanted one."""
        log, contract = self._log, self._log.contract
        columns = tuple(
            InputColumn(
                name=c.name, channel="command", group="command", position=c.unit in ("rad", "m")
            )
            for c in contract.commands
        )
        sent = log.command
        # A supervisor lets a robot begin softly, so less of what is wanted is sent there.
        begun = log.times - log.times[:1] >= SOFT_START_S
        rows = self._known & begun if (self._known & begun).any() else self._known
        said = any(f.where and set(f.where) & {c.name for c in contract.commands} for f in before)
        wanted = log.wanted if log.wanted is not None else sent
        if not np.isfinite(wanted).any():
            return []
        computed = self._wanted()
        kept = next((c for c in computed if not broken_columns(wanted, c, rows)), None)
        held = next((c for c in computed if not broken_columns(sent, self._limited(c), rows)), None)
        if log.wanted is None or log.action is None:
            if kept is not None or held is not None or not computed or said:
                return []
            return named(explain(columns, sent, computed[0], rows))
        if broken_columns(sent, self._limited(wanted), rows):
            if said and kept is None and held is None:
                return []
            # Of the two that differ, the one that the action explains is right.
            pair = (sent, wanted) if held is None or kept is not None else (wanted, sent)
            return named(explain(columns, *pair, rows))
        if kept is not None or said or not computed:
            return []
        explained = explain(columns, wanted, computed[0], rows)
        if before and any(r.kind is RelationKind.UNKNOWN for r in explained.relations):
            return []
        return named(explained)

    def _wanted(self) -> list[Floats]:
        """Outputs of `act`, for the logged inputs and for those that the observation shows."""
        log, face = self._log, self._interface
        actions = []
        if log.action is not None:
            actions.append(log.action)
            seen = self._seen[1:, -log.command.shape[1] - log.action.shape[1] :]
            shown = np.vstack([seen[:, : log.action.shape[1]], log.action[-1:]])
            actions.append(shown)
        if self._frames is not None and not any(face.policy.missing_for("repeatable")):
            actions.append(_clipped(face.runtime.policy(face.stacked(self._frames))))
        readings, commands = log.readings.shape[1], log.command.shape[1]
        goals = log.goals if log.goals is not None else np.zeros((len(log.times), 0))
        found = []
        for action in actions:
            for given in (self._inputs, self._seen):
                for past in (self._inputs, self._seen):
                    inputs = [action, given[:, :readings], goals, past[:, -commands:]]
                    if np.isfinite(inputs[3][1:]).any():
                        made = face.runtime.act(*(np.nan_to_num(i) for i in inputs)).astype(float)
                        made[0] = np.nan
                        found.append(made)
        return found

    def _limited(self, wanted: Floats) -> Floats:
        """The wanted command after the supervisor's limits."""
        limits = self._interface.limits
        step = limits.of("command_rate") / self._log.contract.rate_hz
        last = self._inputs[:, -len(step) :]
        low, high = limits.of("command_low"), limits.of("command_high")
        sent = self._log.command

        def allowed(share: float) -> Floats:
            most = share * step
            near = np.where(np.isfinite(last), np.clip(wanted, last - most, last + most), wanted)
            return np.clip(near, low, high)

        # A driver that takes long leaves less of a step.
        least, limited = allowed(_LEAST_STEP), allowed(1.0)
        limited = np.clip(sent, np.minimum(least, limited), np.maximum(least, limited))
        # Where wanted and sent agree, nothing was limited.
        return np.where(same(sent, wanted), wanted, limited)


def _by_origin(explained: ExplainedColumns) -> tuple[list[Finding], list[Finding]]:
    """Findings about fed-back actions and commands, and about everything else."""
    kept: dict[bool, list[SignalRelation]] = {True: [], False: []}
    for relation in explained.relations:
        kept[explained.columns[relation.column].channel in ("action", "command")].append(relation)
    back, others = (named(replace(explained, relations=kept[fed])) for fed in (True, False))
    return back, others


def _misshown(
    frames: Floats, outputs: tuple[InputColumn, ...]
) -> Iterator[tuple[Fault, list[str], str, Floats]]:
    """(fault, where, how the network sees it, frames) of observations with one fault each."""
    for k in range(1, LONGEST_SHIFT + 1):
        how = f"it sees the observation of {counted(k, 'period')} earlier"
        yield Fault.OBSERVATION_DELAYED, ["observation"], how, shifted(frames, k)
    blocks = [[c] for c in range(len(outputs))] + [
        [c for c, o in enumerate(outputs) if o.group == group]
        for group in dict.fromkeys(o.group for o in outputs)
    ]
    for fault, factor in (
        (Fault.SIGN, -1.0), (Fault.DEGREES, DEGREES), (Fault.DEGREES, 1 / DEGREES),
    ):  # fmt: skip
        for block in blocks:
            tried = frames.copy()
            tried[:, block] *= factor
            names = [outputs[c].name for c in block]
            yield fault, names, f"{', '.join(names)} is multiplied by {factor:.3g}", tried
    for one, other in combinations(range(len(outputs)), 2):
        if outputs[one].group == outputs[other].group:
            tried = frames.copy()
            tried[:, [one, other]] = frames[:, [other, one]]
            names = [outputs[one].name, outputs[other].name]
            yield Fault.PERMUTED, names, f"{' and '.join(names)} are swapped", tried


def _followed(log: ControlLog) -> Bools:
    """(periods,) whether the log has the period before, too."""
    steps = np.diff(log.times, prepend=np.nan)
    usual = np.nanmedian(steps) if len(steps) > 1 else np.nan
    return np.nan_to_num(steps, nan=np.inf) < 1.5 * usual


def _past_known(frames: Floats, known: Bools, history: int) -> Bools:
    """(periods,) whether the log has all periods that the network sees, as finite numbers."""
    whole: Bools = np.all(np.isfinite(frames), axis=1)
    found = whole.copy()
    for k in range(1, history):
        found &= shifted(whole, k)
        if k < history - 1:
            found &= shifted(known, k)
    found &= np.arange(len(frames)) >= history
    return found


def _clipped(action: Reals) -> Floats:
    return np.clip(np.nan_to_num(action), -1.0, 1.0).astype(float)


def _saturated(
    action: Floats, raw: Floats, rows: Bools, specs: tuple[ActionSpec, ...]
) -> list[Finding]:
    """Actions of the network that a gain brings to their limit."""
    names, factors, limits = [], [], np.zeros(action.shape[1])
    for column in broken_columns(action, _clipped(raw), rows):
        mine, gave = action[rows, column], raw[rows, column]
        low, high = float(np.nanmin(mine)), float(np.nanmax(mine))
        limits[column] = limit = max(abs(low), abs(high))
        inner = (np.abs(mine) < 0.999 * limit) & (np.abs(gave) > 1e-3)
        factor = float(np.median(mine[inner] / gave[inner])) if inner.any() else np.inf
        guess = np.clip(factor * gave, low, high) if inner.any() else limit * np.sign(gave)
        if limit > 1.001:  # the gain acts after the clipping
            return []
        constant = np.ptp(mine) == 0 and limit > 0.999
        if not constant and (float(same(mine, guess).mean()) < MIN_EXPLAINED or abs(factor) <= 1.0):
            return []
        names.append(specs[column].name)
        factors.append(factor)
    at_limit = (np.abs(action[rows]) > 0.999 * limits)[:, limits > 0]
    would = (np.abs(raw[rows]) > 0.999)[:, limits > 0]
    share = float(at_limit.mean()) if names else 0.0
    already = float(would.mean()) if names else 1.0
    if not names or share - already < _NEWLY_SATURATED_SHARE * (1.0 - already):
        return []
    evidence = (
        f"The action is at its limit in {100 * share:.0f} % of the periods, as the network's own"
        f" output would be if multiplied by {np.median(factors):.3g}."
    )
    return [Finding(Fault.SATURATED, tuple(names), evidence, 0.95, (Fault.SCALE,))]
