"""Every verb of the command line: its options, what runs it, and its line in the help.

Options and runners are named, not imported: a verb loads its room when it runs, so that `--help`
answers at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sim2real.errors import Sim2RealError, nearest


@dataclass(frozen=True)
class Verb:
    """One thing that the command line does."""

    words: str
    group: str
    """Part of the circle that it belongs to."""
    does: str
    """What it does, in a few words."""
    config: str
    """Dataclass of its options, as `module:Class` of the package."""
    run: str
    """Function of these options that gives the exit code, as `module:function`; or an analysis
    whose result has sentences to print."""
    example: str
    """Example of what follows its words."""

    @property
    def options(self) -> type[Any]:
        """The dataclass of its options."""
        found: type[Any] = _load(self.config)
        return found

    @property
    def about(self) -> str:
        """Its long description: that of its options, or `does` if verbs share the options."""
        if sum(verb.config == self.config for verb in VERBS) > 1:
            return f"{self.does[:1].upper()}{self.does[1:]}."
        return inspect.cleandoc(self.options.__doc__ or "")

    @property
    def runner(self) -> Callable[[Any], int]:
        """What runs it."""
        found: Callable[..., Any] = _load(self.run)
        if self.run.startswith(("cli.", "demo:")):
            return found
        from sim2real.cli.adapter import runner_of

        return runner_of(found)


VERBS = (
    Verb("demo", "start", "close the gap to a stand-in pendulum, and write a report",
         "demo:DemoConfig", "demo:demo", "--unit 7"),
    Verb("loop", "start", "close the gap to one robot; can be stopped and resumed",
         "loop:LoopConfig", "cli.loop:run_loop", "pendulum-swingup --robot unit:7"),
    Verb("data import", "data", "import recordings into a lake",
         "cli.options:DataImport", "cli.data_transfer:run_import",
         "logs/ --channels map.toml"),
    Verb("data export", "data", "write episodes of a lake to another format",
         "cli.options:DataExport", "cli.data_transfer:run_export",
         "out.mcap --format mcap --where \"kind = 'real'\""),
    Verb("data check", "data", "find faults in recordings, and repair them",
         "cli.options:DataCheck", "cli.data_transfer:run_check", "logs/run-3.csv --repair"),
    Verb("data query", "data", "query the lake with SQL",
         "cli.options:DataQuery", "cli.data:run_query",
         '"select kind, count(*) from episodes group by kind"'),
    Verb("data ls", "data", "list episodes, the newest first",
         "cli.options:DataLs", "cli.data:run_ls", "--where \"outcome = 'failure'\""),
    Verb("data show", "data", "show an episode with its curves",
         "cli.options:DataShow", "cli.data:run_show", "3f2a --png episode.png"),
    Verb("data stats", "data", "count episodes by kind, task, robot and outcome",
         "cli.options:InLake", "cli.data:run_stats", ""),
    Verb("data label", "data", "label an episode, or an interval of it",
         "cli.options:DataLabel", "cli.data:run_label", "3f2a failure grasp"),
    Verb("data consent grant", "data", "record what a participant agrees to",
         "cli.options:ConsentGrant", "cli.data:run_grant", "p7 --scope training"),
    Verb("data consent ls", "data", "list participants, what they agreed to, and their episodes",
         "cli.options:InLake", "cli.data:run_consents", ""),
    Verb("data consent withdraw", "data", "erase a participant's data everywhere",
         "cli.options:ConsentWithdraw", "cli.data:run_withdraw", "p7 --dry-run"),
    Verb("data lineage", "data", "show what an episode was made from, and what from it",
         "cli.options:DataLineage", "cli.data:run_lineage", "3f2a"),
    Verb("data verify", "data", "check every hash; exit code 1 if anything has changed",
         "cli.options:InLake", "cli.data:run_verify", ""),
    Verb("data versions", "data", "list the versions of the lake",
         "cli.options:InLake", "cli.data:run_versions", ""),
    Verb("data compact", "data", "merge small files into large ones; keeps every version",
         "cli.options:InLake", "cli.data:run_compact", ""),
    Verb("gap", "gap", "measure how far a twin is from its robot, and where",
         "gap:GapConfig", "cli.gap:run_gap", "TWIN --logs recordings/"),
    Verb("attribute", "gap", "attribute the gap, and lost success, to their causes",
         "attribution:AttributeConfig", "cli.attribute:run_attribute",
         "TWIN --logs recordings/ --policy RUN --real 12/20"),
    Verb("failures", "gap", "explain why trials on a robot failed",
         "attribution:FailuresConfig", "attribution:explain_failures",
         "BUNDLE --logs runs/deploy/arm/"),
    Verb("identify", "twin", "fit a twin to recordings: its next version",
         "identification:IdentifyConfig", "cli.identify:run_identify",
         "TWIN --logs recordings/"),
    Verb("identify plan", "twin", "choose the motions to record next",
         "plan:PlanConfig", "cli.identify:run_plan", "TWIN --motions 4"),
    Verb("identify folds", "twin", "check a fit on every recording, each left out in turn",
         "identification:CrossValidateConfig", "identification:cross_validate",
         "TWIN --logs recordings/ --folds 4 --executor local"),
    Verb("randomize show", "twin", "show parameter ranges, and whether they cover the robot",
         "gap:RangesConfig", "cli.gap:run_ranges", "TWIN --logs recordings/"),
    Verb("twin show", "twin", "show version, parameters, effects and channels",
         "cli.options:OnTwin", "cli.twin:run_show", "TWIN"),
    Verb("twin lint", "twin", "find common mistakes; exit code 1 if there are warnings",
         "cli.options:OnTwin", "cli.twin:run_lint", "TWIN"),
    Verb("tasks", "policy", "list the tasks that can be trained",
         "cli.options:Tasks", "cli.learn:run_tasks", ""),
    Verb("train", "policy", "train a policy with PPO in randomised worlds",
         "learn:TrainConfig", "cli.learn:run_train",
         "pendulum-swingup --source posterior --twin TWIN"),
    Verb("play", "policy", "film a policy, or show it in a viewer",
         "evaluation:PlayConfig", "cli.learn:run_play", "RUN"),
    Verb("export", "policy", "make a deployable bundle from a training run",
         "learn:ExportConfig", "cli.learn:run_export", "RUN"),
    Verb("evaluate", "proof", "measure a policy's success in randomised worlds",
         "evaluation:EvaluateConfig", "cli.evaluate:run_evaluate", "RUN --episodes 500"),
    Verb("compare", "proof", "test whether policy B is better than policy A",
         "evaluation:CompareConfig", "evaluation:compare", "a.csv b.csv"),
    Verb("rank", "proof", "test whether simulation ranks policies as reality does",
         "evaluation:RankConfig", "cli.evaluate:run_rank", "scores.csv"),
    Verb("power", "proof", "plan how many trials are needed to show a difference",
         "evaluation:PowerConfig", "evaluation:plan_trials", "--from 0.6 --to 0.8"),
    Verb("predict", "proof", "predict real success from simulated trials",
         "evaluation:PredictConfig", "evaluation:expect",
         "RUN/evaluate --real trials.csv"),
    Verb("report", "proof", "the page of a stored result, made again",
         "cli.options:ReportPage", "cli.report:run_report", "runs/gap/arm/20260101-120000"),
    Verb("record", "robot", "move a robot for identification, and record it",
         "robot:RecordConfig", "cli.record:run_record",
         "TWIN --robot unit:7 --task arm-reach --execute --person ana"),
    Verb("deploy", "robot", "run a bundle on a robot, step by step up the ladder",
         "robot:DeployConfig", "cli.deploy:run_deploy",
         "BUNDLE --robot unit:7 --step shadow --execute --person ana"),
    Verb("doctor", "robot", "find faults in the interface of policy and robot",
         "doctor:DoctorConfig", "doctor:diagnose",
         "BUNDLE --logs runs/deploy/arm/"),
    Verb("drift", "robot", "detect whether a deployed robot has changed",
         "robot:DriftConfig", "cli.drift:run_drift",
         "BUNDLE --logs runs/deploy/arm/"),
)  # fmt: skip

FAMILIES = {
    "data": ("data", "import, check, query, label and export episodes"),
    "twin": ("twin", "show a twin, or lint it"),
}
"""First words of verbs that share one line in the help: its group and text."""
_HELP = ("-h", "--help")
_ABOUT = "Measure, explain and close the gap between simulation and the real robot."


def find_verb(words: Sequence[str]) -> tuple[Verb, list[str]] | None:
    """The verb at the start of the words, and the words after it; None if they ask for an overview.

    An unknown verb is a `Sim2RealError` that names the nearest.
    """
    for length in (3, 2, 1):
        for verb in VERBS:
            if verb.words.split() == list(words[:length]):
                return verb, list(words[length:])
    asked = [word for word in words if word not in _HELP]
    if not words or (len(asked) < len(words) and (not asked or _beginning(asked))):
        return None
    raise Sim2RealError(_unknown(asked))


def _unknown(words: list[str]) -> str:
    """The error for words that are not a verb."""
    begun = next((k for k in (2, 1) if len(words) >= k and _beginning(words[:k])), 0)
    known = {" ".join(verb.words.split()[begun : begun + 1]) for verb in _beginning(words[:begun])}
    known |= {verb.words for verb in VERBS} if not begun else set()
    name = " ".join(["sim2real", *words[:begun]])
    if len(words) == begun:
        return f"{name} needs one of: {', '.join(sorted(known))}"
    wrong = words[begun]
    return f"{name} has no verb {wrong!r}{nearest(wrong, known) or f'; `{name} --help` lists them'}"


def _beginning(words: Sequence[str]) -> list[Verb]:
    """Verbs that begin with these words."""
    return [verb for verb in VERBS if verb.words.split()[: len(words)] == list(words)]


def help_text(words: Sequence[str]) -> str:
    """A line per verb: of all verbs, on one screen, or of those that begin with the words."""
    asked = [word for word in words if word not in _HELP]
    begin = " ".join(["sim2real", *asked])
    first = "" if asked else "[--version] "
    lines = [f"usage: {begin} {first}VERB …    ({begin} VERB --help shows its options)"]
    if asked:
        rows = [("", verb.words, verb.does) for verb in _beginning(asked)]
    else:
        lines += [_ABOUT, ""]
        rows = list(_overview())
    wide, last = max(len(name) for _, name, _ in rows) + 2, ""
    for group, name, does in rows:
        shown, last = ("" if group == last else group), group
        lines.append(f"{shown:8}{name:{wide}}{does}".rstrip())
    return "\n".join(lines)


def _overview() -> Iterator[tuple[str, str, str]]:
    """(group, words, what it does) of each verb or family of verbs."""
    seen = set()
    for verb in VERBS:
        first = verb.words.split()[0]
        if first not in FAMILIES:
            yield verb.group, verb.words, verb.does
        elif first not in seen:
            seen.add(first)
            yield FAMILIES[first][0], f"{first} …", FAMILIES[first][1]


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"sim2real.{module}"), name)
