"""A policy on a robot: one step of the ladder of trust, with its attempts and its record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim2real.data import Episode, Logs, select
from sim2real.errors import Sim2RealError, nearest, options_as
from sim2real.evaluation import OpenedPolicy, PolicySource, open_policy
from sim2real.robot.connect import connected
from sim2real.robot.deploy_config import DeployConfig
from sim2real.robot.deployment import Deployment, OperatorPrompts
from sim2real.robot.deployment_session import DeploymentSession
from sim2real.robot.ladder import LadderRecord, write_record
from sim2real.robot.readings import Goals
from sim2real.robot.rehearsal import rehearse


def deploy(
    request: DeployConfig | PolicySource,
    *,
    logs: Logs = (),
    prompts: OperatorPrompts | None = None,
    **options: Any,  # fields of DeployConfig
) -> Deployment:
    """Take one step of the ladder of trust with a policy; nothing is sent without `execute`.

    `request` is the policy, and `options` are fields of `DeployConfig`; or it is that, whole. A
    `replay` uses `logs`. Whatever does not fit is refused before anything moves; `prompts` are the
    callbacks to the person at the robot, who is told what the policy lacks.
    """
    if isinstance(request, DeployConfig):
        config, opened = request, open_policy(request.bundle)
    else:
        opened = open_policy(request)
        config = options_as(DeployConfig, bundle=opened.place or Path(opened.id), **options)
    prompts = prompts or OperatorPrompts()
    before = opened.policy.abilities.before_robots
    if before:
        raise Sim2RealError(f"{opened.place or opened.id} may not drive a robot yet: {before}")
    for line in opened.missing_for("interface", "limits"):
        prompts.tell(line)
    if config.step == "replay" and not (logs or config.logs):
        raise Sim2RealError("replay needs recordings: --logs FILE …")
    if config.trials < 1 or not 0 <= config.seconds < 1e6:
        raise Sim2RealError(
            f"--trials must be at least 1 and --seconds from 0 to 1e6, not {config.trials} and"
            f" {config.seconds:g}"
        )
    goals = parse_goals(config.goal)
    known = [goal.name for goal in opened.contract.goals]
    for name in goals:
        if name not in known:
            raise Sim2RealError(f"the policy has no goal {name!r}{nearest(name, known)}")
    if config.step == "replay":
        chosen = select(logs or config.logs, twin=opened.contract.robot)
        return _replay(config, opened, chosen.episodes, goals, prompts)
    session = DeploymentSession(config, opened, goals, prompts)
    with connected(session.robot):
        return session.run()


def parse_goals(given: Sequence[str]) -> dict[str, list[float]]:
    """Goals from `name=0.2,0,0.1`; a malformed one is a `Sim2RealError`."""
    found = {}
    for text in given:
        name, _, numbers = text.partition("=")
        try:
            found[name] = [float(part) for part in numbers.split(",")]
        except ValueError:
            raise Sim2RealError(f"--goal must look like name=0.2,0,0.1, not {text!r}") from None
    return found


def _replay(
    config: DeployConfig,
    policy: OpenedPolicy,
    logs: Sequence[Episode],
    goals: Goals,
    prompts: OperatorPrompts,
) -> Deployment:
    found = rehearse(policy, logs, goals=goals, report=prompts.report)
    short = found.shortfall()
    record = LadderRecord(
        step="replay",
        passed=short is None,
        why=short.why if short else "",
        to_pass=short.to_pass if short else "",
        doubt=short is not None and short.doubt,
        bundle=policy.seal,
        robot=logs[0].provenance.robot,
        serial=logs[0].provenance.serial,
        person=config.person,
        episodes=tuple(episode.id for episode in logs),
        figures=found.to_dict(),
    )
    write_record(policy, record)
    return Deployment(
        step="replay",
        robot=record.robot,
        serial=record.serial,
        execute=False,
        skipped="",
        trials=(),
        record=record,
        folder=None,
    )
