"""Tables of a lake, the views on them, and the questions that a lake asks of them."""

from __future__ import annotations

import pyarrow as pa

from sim2real.data.arrow_rows import (
    EPISODES,
    SIGNALS,
    WHEN,
    schema,
)
from sim2real.data.labels import LABELS

CONSENTS = schema(
    ("participant", pa.string()),
    ("scope", pa.list_(pa.string())),
    ("expires who", pa.string()),
    ("created", WHEN),
)
"""Recorded agreements; the newest of a participant is in force."""
DATASETS = schema(
    ("id name", pa.string()),
    ("version", pa.int64()),
    ("episodes", pa.list_(pa.string())),
    ("manifest", pa.string()),
    ("created", WHEN),
)
"""Training sets: the manifest of each mixture."""
POLICIES = schema(("policy dataset", pa.string()), ("created", WHEN))
"""Which policy was trained on which data set."""
WITHDRAWALS = schema(
    ("id", pa.string()),
    ("created", WHEN),
    ("episodes datasets policies sources", pa.list_(pa.string())),
)
"""What remains of erased data: no name, no pseudonym, no sample."""
RESULTS = schema(
    ("id kind", pa.string()),
    ("schema", pa.int64()),
    ("created", WHEN),
    ("episodes", pa.list_(pa.string())),
    ("twin json", pa.string()),
)
"""What analyses found, with the episodes and the version of the twin that it was computed from."""
TABLES = {
    "episodes": (EPISODES, ("id",), 65_536),
    "signals": (SIGNALS, ("episode", "channel"), 256),
    "labels": (LABELS, ("id",), 65_536),
    "consents": (CONSENTS, ("participant", "created"), 65_536),
    "datasets": (DATASETS, ("id",), 1_024),
    "policies": (POLICIES, ("policy", "dataset"), 65_536),
    "withdrawals": (WITHDRAWALS, ("id",), 65_536),
    "results": (RESULTS, ("id",), 64),
}
LATE = ("results",)
"""Tables that a lake has from their first row on."""
CURRENT = """create view current_labels as select * from labels where id not in
    (select supersedes from labels where supersedes <> '')"""
VERDICTS = """create view verdicts as
    select episodes.id, coalesce(said.tag, nullif(outcome, ''), '') as verdict
    from episodes left join (
        select episode, arg_max(tag, created) as tag from current_labels
        where tag in ('success', 'failure') and start_s is null group by episode
    ) as said on said.episode = episodes.id"""
ORIGINS = """create view origins as
    select policy, dataset, datasets.manifest->>'$.purpose' as purpose,
        unnest(datasets.episodes) as episode
    from policies join datasets on policies.dataset = datasets.id"""
SIGNALS_VIEW = """create view signals as
    select * from stored_signals semi join episodes on stored_signals.episode = episodes.id"""
LINEAGE = """
with recursive
    edges as (select id as child, unnest(parents) as parent from episodes),
    up as (
        select $id as id, 0 as steps
        union select edges.parent, up.steps - 1 from up join edges on edges.child = up.id
    ),
    down as (
        select $id as id, 0 as steps
        union select edges.child, down.steps + 1 from down join edges on edges.parent = down.id
    ),
    made as (
        select policy as id, max(steps) + 1 as steps, purpose as process, 'policy' as kind,
            true as present
        from down join origins on origins.episode = down.id group by policy, purpose
    ),
    acted as (
        select distinct policy as id, -1 as steps, 'trial' as process, 'policy' as kind,
            true as present
        from episodes where id = $id and policy <> ''
    )
select id, steps, process, kind, episodes.id is not null as present
from (select * from up union select * from down) as walk left join episodes using (id)
union all select * from made union all select * from acted
order by steps, id, process
"""
PEOPLE = """
with recursive family as (
    select id as made, id from episodes semi join chosen using (id)
    union select family.made, unnest(episodes.parents) from family join episodes using (id)
)
select made, id, provenance from family join episodes using (id)
where len(participants) > 0 order by made, id
"""
