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
    """What it does, in half a line."""
    config: str
    """Dataclass of its options, as `module:Class` of the package."""
    run: str
    """What takes these options and gives the exit code, as `module:function`; or an analysis, if
    what it finds says itself in sentences."""
    example: str
    """What may follow its words."""

    @property
    def options(self) -> type[Any]:
        """The dataclass of its options."""
        found: type[Any] = _load(self.config)
        return found

    @property
    def about(self) -> str:
        """What it does, at length, as its options say; of options that verbs share, its line."""
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
    Verb("demo", "start", "close the gap to a stand-in pendulum, and report it",
         "demo:DemoConfig", "demo:demo", "--unit 7"),
    Verb("loop", "start", "close the gap to one robot; can be stopped and resumed",
         "loop:LoopConfig", "cli.loop:run_loop", "pendulum-swingup --robot unit:7"),
    Verb("data import", "data", "import recordings into a lake",
         "cli.options:DataImport", "cli.data_transfer:run_import",
         "logs/ --channels map.toml"),
    Verb("data export", "data", "write episodes of a lake to another format",
         "cli.options:DataExport", "cli.data_transfer:run_export",
         "out.mcap --format mcap --where \"kind = 'real'\""),
    Verb("data check", "data", "find what is wrong with recordings, and repair it",
         "cli.options:DataCheck", "cli.data_transfer:run_check", "logs/run-3.csv --repair"),
    Verb("data query", "data", "ask the lake with SQL",
         "cli.options:DataQuery", "cli.data:run_query",
         '"select kind, count(*) from episodes group by kind"'),
    Verb("data ls", "data", "list episodes, the newest first",
         "cli.options:DataLs", "cli.data:run_ls", "--where \"outcome = 'failure'\""),
    Verb("data show", "data", "show an episode with its curves",
         "cli.options:DataShow", "cli.data:run_show", "3f2a --png episode.png"),
    Verb("data stats", "data", "count what is in the lake, by kind, task, robot and outcome",
         "cli.options:InLake", "cli.data:run_stats", ""),
    Verb("data label", "data", "say something about an episode",
         "cli.options:DataLabel", "cli.data:run_label", "3f2a failure grasp"),
    Verb("data consent grant", "data", "record what a participant agrees to",
         "cli.options:ConsentGrant", "cli.data:run_grant", "p7 --scope training"),
    Verb("data consent ls", "data", "list participants, what they agreed to, and their episodes",
         "cli.options:InLake", "cli.data:run_consents", ""),
    Verb("data consent withdraw", "data", "erase a participant's data everywhere",
         "cli.options:ConsentWithdraw", "cli.data:run_withdraw", "p7 --dry-run"),
    Verb("data lineage", "data", "show what an episode was made from, and into",
         "cli.options:DataLineage", "cli.data:run_lineage", "3f2a"),
    Verb("data verify", "data", "hash every file and episode again; exit code 1 if any has changed",
         "cli.options:InLake", "cli.data:run_verify", ""),
    Verb("data versions", "data", "list the versions of the lake: number, time, episodes",
         "cli.options:InLake", "cli.data:run_versions", ""),
    Verb("data compact", "data", "merge small files into large ones; every version stays",
         "cli.options:InLake", "cli.data:run_compact", ""),
    Verb("gap", "gap", "how far a twin is from its robot, and where",
         "gap:GapConfig", "cli.gap:run_gap", "TWIN --logs recordings/"),
    Verb("attribute", "gap", "what the gap, and a policy's lost success, are made of",
         "attribution:AttributeConfig", "cli.attribute:run_attribute",
         "TWIN --logs recordings/ --policy RUN --real 12/20"),
    Verb("failures", "gap", "why attempts on a robot failed",
         "attribution:FailuresConfig", "attribution:explain_failures",
         "BUNDLE --logs runs/deploy/arm/"),
    Verb("identify", "twin", "a twin's next version, from recordings",
         "identification:IdentifyConfig", "cli.identify:run_identify",
         "TWIN --logs recordings/"),
    Verb("identify plan", "twin", "which motions to record next",
         "plan:PlanConfig", "cli.identify:run_plan", "TWIN --motions 4"),
    Verb("randomize show", "twin", "ranges that episodes draw from, and whether they fit",
         "gap:RangesConfig", "cli.gap:run_ranges", "TWIN --logs recordings/"),
    Verb("twin show", "twin", "show version, parameters, effects and channels",
         "cli.options:OnTwin", "cli.twin:run_show", "TWIN"),
    Verb("twin lint", "twin", "find the classic mistakes; exit code 1 if there are warnings",
         "cli.options:OnTwin", "cli.twin:run_lint", "TWIN"),
    Verb("tasks", "policy", "list the tasks that can be trained",
         "cli.options:Tasks", "cli.learn:run_tasks", ""),
    Verb("train", "policy", "train a policy with PPO in randomised worlds",
         "learn:TrainConfig", "cli.learn:run_train",
         "pendulum-swingup --source posterior --twin TWIN"),
    Verb("play", "policy", "a video of a policy at work",
         "evaluation:PlayConfig", "cli.learn:run_play", "RUN"),
    Verb("export", "policy", "make a deployable bundle of a training run",
         "learn:ExportConfig", "cli.learn:run_export", "RUN"),
    Verb("evaluate", "proof", "success over randomised worlds, and where it fails",
         "evaluation:EvaluateConfig", "cli.evaluate:run_evaluate", "RUN --episodes 500"),
    Verb("compare", "proof", "whether policy B is better than A",
         "evaluation:CompareConfig", "evaluation:compare", "a.csv b.csv"),
    Verb("rank", "proof", "whether simulation ranks policies as reality does",
         "evaluation:RankConfig", "cli.evaluate:run_rank", "scores.csv"),
    Verb("power", "proof", "how many trials show a difference",
         "evaluation:PowerConfig", "evaluation:plan_trials", "--from 0.6 --to 0.8"),
    Verb("predict", "proof", "real success from simulated trials",
         "evaluation:PredictConfig", "evaluation:expect",
         "RUN/evaluate --real trials.csv"),
    Verb("report", "proof", "the page of a stored result, made again",
         "cli.options:ReportPage", "cli.report:run_report", "runs/gap/arm/20260101-120000"),
    Verb("record", "robot", "move a robot for identification, and record it",
         "robot:RecordConfig", "cli.record:run_record",
         "TWIN --robot unit:7 --task arm-reach --execute --person ana"),
    Verb("deploy", "robot", "run a bundle on a robot, up the ladder of trust",
         "robot:DeployConfig", "cli.deploy:run_deploy",
         "BUNDLE --robot unit:7 --step shadow --execute --person ana"),
    Verb("doctor", "robot", "what is wrong between a policy and its robot",
         "doctor:DoctorConfig", "doctor:diagnose",
         "BUNDLE --logs runs/deploy/arm/"),
    Verb("drift", "robot", "whether a deployed robot has changed",
         "robot:DriftConfig", "cli.drift:run_drift",
         "BUNDLE --logs runs/deploy/arm/"),
)  # fmt: skip

FAMILIES = {
    "data": ("data", "import, check, query, label, export; a lake of episodes"),
    "twin": ("twin", "show a twin, or lint it"),
}
"""First words of several verbs that have one line in the help together: its group, its text."""
_HELP = ("-h", "--help")
_ABOUT = "Measure, explain and close the gap between simulation and the real robot."


def find_verb(words: Sequence[str]) -> tuple[Verb, list[str]] | None:
    """The verb that words begin with, and the words after it; None where they ask for an overview.

    Words that begin no verb are a `Sim2RealError` that names the nearest.
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
    """What is wrong with words that are no verb."""
    begun = next((k for k in (2, 1) if len(words) >= k and _beginning(words[:k])), 0)
    known = {" ".join(verb.words.split()[begun : begun + 1]) for verb in _beginning(words[:begun])}
    known |= {verb.words for verb in VERBS} if not begun else set()
    name = " ".join(["sim2real", *words[:begun]])
    if len(words) == begun:
        return f"{name} does one of: {', '.join(sorted(known))}"
    wrong = words[begun]
    return f"{name} has no verb {wrong!r}{nearest(wrong, known)}"


def _beginning(words: Sequence[str]) -> list[Verb]:
    """Verbs that begin with these words, and have more."""
    return [verb for verb in VERBS if verb.words.split()[: len(words)] == list(words)]


def help_text(words: Sequence[str]) -> str:
    """A line a verb: of all on one screen, or of those that begin with the words."""
    asked = [word for word in words if word not in _HELP]
    begin = " ".join(["sim2real", *asked])
    lines = [f"usage: {begin} VERB …    ({begin} VERB --help tells the rest of a verb)"]
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
