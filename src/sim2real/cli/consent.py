"""`sim2real data consent …`: what the people in recordings have agreed to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from sim2real.cli.lake import InLake, open_lake, user
from sim2real.cli.output import print_json, print_table, say


@dataclass(frozen=True, kw_only=True)
class ConsentGrant(InLake):
    """Record what a participant agrees to from now on."""

    participant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PARTICIPANT")]
    """Pseudonym of the person."""
    scope: tuple[Literal["training", "evaluation", "sharing", "none"], ...]
    """What their data may be used for; `none` for nothing."""
    expires: str = ""
    """Last day, as 2027-12-31; without end if not given."""
    who: str = ""
    """Who records it; the user's name if not given."""


@dataclass(frozen=True, kw_only=True)
class ConsentLs(InLake):
    """List the participants, what they agreed to, and how many episodes they are in."""


@dataclass(frozen=True, kw_only=True)
class ConsentWithdraw(InLake):
    """Erase a participant's data from every table, version and file, and list what it went into."""

    participant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PARTICIPANT")]
    """Pseudonym of the person."""
    dry_run: bool = False
    """Only say how many episodes would go."""


@dataclass(frozen=True, kw_only=True)
class DataConsent:
    """Consent of the people in recordings: grant, ls, withdraw."""

    what: Annotated[
        Annotated[ConsentGrant, tyro.conf.subcommand("grant")]
        | Annotated[ConsentLs, tyro.conf.subcommand("ls")]
        | Annotated[ConsentWithdraw, tyro.conf.subcommand("withdraw")],
        tyro.conf.OmitSubcommandPrefixes,
    ]


def grant(verb: ConsentGrant) -> int:
    """Record an agreement."""
    from sim2real.data import Consent

    scope = tuple(part for part in verb.scope if part != "none")
    consent = Consent(participant=verb.participant, scope=scope, expires=verb.expires)
    open_lake(verb).grant(consent, who=verb.who or user())
    if verb.json:
        print_json(consent.to_dict())
    else:
        given = ", ".join(consent.scope) or "nothing"
        say(
            f"{consent.participant}: {given}"
            + (f" until {consent.expires}" * bool(consent.expires))
        )
    return 0


def consents(verb: ConsentLs) -> int:
    """List the agreements in force."""
    lake = open_lake(verb)
    found = lake.query("select provenance from episodes where len(participants) > 0").to_pylist()
    rows: dict[str, dict[str, Any]] = {}
    for entry in found:
        for carried in json.loads(entry["provenance"])["consent"]:
            row = rows.setdefault(carried["participant"], {"episodes": 0, **carried})
            row["episodes"] += 1
    for name, consent in lake.consents().items():
        rows[name] = {"episodes": rows.get(name, {}).get("episodes", 0), **consent.to_dict()}
        rows[name]["granted"] = True
    listed = [
        {
            "participant": name,
            "episodes": row["episodes"],
            "scope": row["scope"],
            "expires": row.get("expires"),
            "from": "granted" if row.get("granted") else "as its episodes carry",
        }
        for name, row in sorted(rows.items())
    ]
    if verb.json:
        print_json(listed)
    else:
        print_table(
            ("participant", "episodes", "scope", "expires", "from"),
            (row.values() for row in listed),
        )
    return 0


def withdraw_(verb: ConsentWithdraw) -> int:
    """Erase a person's data."""
    from sim2real.data import affected, withdraw

    lake = open_lake(verb)
    if verb.dry_run:
        ids = sorted(affected(lake, verb.participant))
        if verb.json:
            print_json({"dry_run": True, "episodes": ids})
        else:
            say(f"{len(ids)} episodes would be erased from every version; nothing is done yet")
        return 0
    gone = withdraw(lake, verb.participant)
    if verb.json:
        print_json(gone.to_dict())
        return 0
    say(f"erased {len(gone.episodes)} episodes; tombstone {gone.id}")
    names = lake.query("select id, name from datasets").to_pydict()
    known = dict(zip(names["id"], names["name"], strict=True))
    for dataset in gone.datasets:
        say(f"data set made from them: {dataset} ({known.get(dataset, '')})")
    for policy in gone.policies:
        say(f"policy made from them: {policy}")
    return 0
