"""What a person in a recording has agreed to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from sim2real.errors import Sim2RealError, explaining, nearest
from sim2real.plain import PlainData

SCOPES = ("training", "evaluation", "sharing")


@dataclass(frozen=True, kw_only=True)
class Consent(PlainData, also=("expires?",)):
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
            with explaining("consent: the expiry is not a date like 2027-12-31", ValueError):
                day = date.fromisoformat(self.expires)
            object.__setattr__(self, "expires", day.isoformat())

    def refusal(self, purpose: str) -> str:
        """Why the data may not be used for `purpose` today; '' if they may."""
        if purpose not in self.scope:
            return f"{self.participant} has not agreed to {purpose}"
        if self.expires and self.expires < datetime.now(UTC).date().isoformat():
            return f"the consent of {self.participant} expired on {self.expires}"
        return ""
