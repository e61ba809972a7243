"""`sim2real data consent …`: what the people in recordings have agreed to."""

from __future__ import annotations

from sim2real.cli.data_options import ConsentGrant, ConsentLs, ConsentWithdraw
from sim2real.cli.lake import open_lake, user
from sim2real.cli.output import answer, print_json, print_table, say
from sim2real.data import Consent, LakeKeeper


def run_grant(verb: ConsentGrant) -> int:
    """Record an agreement; 0."""
    scope = tuple(part for part in verb.scope if part != "none")
    consent = Consent(participant=verb.participant, scope=scope, expires=verb.expires)
    open_lake(verb).grant(consent, who=verb.who or user())
    given = ", ".join(consent.scope) or "nothing"
    end = f" until {consent.expires}" if consent.expires else ""
    return answer(consent, f"{consent.participant}: {given}{end}", json=verb.json)


def run_ls(verb: ConsentLs) -> int:
    """List the agreements in force; 0."""
    listed = LakeKeeper(open_lake(verb)).participants()
    columns = ("participant", "episodes", "scope", "expires", "from")
    rows = [row.values() for row in listed]
    return answer(listed, lambda: print_table(columns, rows), json=verb.json)


def run_withdraw(verb: ConsentWithdraw) -> int:
    """Erase a person's data; 0."""
    lake = open_lake(verb)
    if verb.dry_run:
        ids = sorted(LakeKeeper(lake).affected(verb.participant))
        words = f"{len(ids)} episodes would be erased from every version; nothing is done yet"
        return answer({"dry_run": True, "episodes": ids}, words, json=verb.json)
    gone = LakeKeeper(lake).withdraw(verb.participant)
    if verb.json:
        print_json(gone)
        return 0
    say(f"erased {len(gone.episodes)} episodes; tombstone {gone.id}")
    names = lake.query("select id, name from datasets").to_pydict()
    known = dict(zip(names["id"], names["name"], strict=True))
    for dataset in gone.datasets:
        say(f"data set made from them: {dataset} ({known.get(dataset, '')})")
    for policy in gone.policies:
        say(f"policy made from them: {policy}")
    return 0
