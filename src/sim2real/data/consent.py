"""What a person in a recording has agreed to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sim2real.errors import Sim2RealError, nearest, table_at

SCOPES = ("training", "evaluation", "sharing")


@dataclass(frozen=True, kw_only=True)
class Consent:
    """One person's agreement, as an episode carries it."""

    participant: str
    """Pseudonym of the person; never a name."""
    scope: tuple[str, ...]
    """What the data may be used for: 'training', 'evaluation', 'sharing'; empty for nothing."""
    expires: str = ""
    """Last day of the agreement, such as '2027-12-31'; '' if it does not expire."""

    def __post_init__(self) -> None:
        if not self.participant or not self.participant.isprintable():
            raise Sim2RealError("a consent needs the participant's pseudonym")
        for scope in self.scope:
            if scope not in SCOPES:
                raise Sim2RealError(f"consent: unknown scope {scope!r}{nearest(scope, SCOPES)}")
        object.__setattr__(self, "scope", tuple(sorted(set(self.scope))))
        if self.expires:
            try:
                day = date.fromisoformat(self.expires)
            except ValueError:
                raise Sim2RealError(
                    f"consent: expiry {self.expires!r} is not a date like 2027-12-31"
                ) from None
            object.__setattr__(self, "expires", day.isoformat())

    def refusal(self, purpose: str, *, today: str = "") -> str:
        """Why the data may not be used for `purpose` on the day `today`; '' if it may."""
        if purpose not in self.scope:
            return f"{self.participant} has not agreed to {purpose}"
        if self.expires and self.expires < (today or datetime.now(UTC).date().isoformat()):
            return f"the consent of {self.participant} expired on {self.expires}"
        return ""

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        data: dict[str, object] = {"participant": self.participant, "scope": list(self.scope)}
        return {**data, "expires": self.expires} if self.expires else data

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Consent:
        """A consent from plain data; malformed data is a `Sim2RealError`."""
        values: Mapping[str, object] = table_at(data, "consent")
        unknown = sorted(set(values) - {"participant", "scope", "expires"})
        if unknown:
            raise Sim2RealError(
                f"consent has no field {unknown[0]!r}"
                f"{nearest(unknown[0], ('participant', 'scope', 'expires'))}"
            )
        scope = values.get("scope", ())
        if isinstance(scope, str) or not isinstance(scope, Iterable):
            raise Sim2RealError("consent: scope must be a list")
        participant, expires = values.get("participant", ""), values.get("expires", "")
        if isinstance(expires, date):  # from TOML
            expires = expires.isoformat()[:10]
        if not isinstance(participant, str) or not isinstance(expires, str):
            raise Sim2RealError("consent: participant and expires must be text")
        return cls(
            participant=participant, scope=tuple(str(entry) for entry in scope), expires=expires
        )
