"""Identification of contact parameters, where gradients would mislead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim2real.identification.cma_es import CmaSearch, gradients_mislead, search
from sim2real.identification.identifiability import Identifiability, from_information
from sim2real.identification.importance_sampling import weighed_posterior
from sim2real.identification.posterior import Posterior
from sim2real.identification.whole_recordings import WholeRecordings
from sim2real.logs import ControlLog
from sim2real.params import Dimension
from sim2real.phases import Report, phase
from sim2real.replay import open_parameters
from sim2real.twin import Twin


def touches(twin: Twin, fitted: Sequence[str] = ()) -> bool:
    """Whether a contact parameter is open, or among those that are fitted."""
    chosen = [p for p in open_parameters(twin) if not fitted or p.name in fitted]
    return any(p.dimension == Dimension.CONTACT for p in chosen)


def identify_contact(
    twin: Twin,
    logs: Sequence[ControlLog],
    *,
    fitted: Sequence[str] = (),
    seed: int = 0,
    threads: int = 0,
    report: Report = lambda done, of: None,
) -> tuple[CmaSearch, Posterior, Identifiability] | None:
    """Search for the parameters with whole recordings; None if gradients do not mislead."""
    if not touches(twin, fitted):
        return None
    problem = WholeRecordings(twin, logs, fitted=tuple(fitted), threads=threads)
    if not gradients_mislead(problem):
        return None
    found = search(problem, seed=seed, report=phase(report, "search"))
    posterior = weighed_posterior(found, seed=seed, report=phase(report, "posterior"))
    return found, posterior, narrowed(found, posterior)


def narrowed(found: CmaSearch, posterior: Posterior) -> Identifiability:
    """Identifiability from how much narrower each parameter is than its prior."""
    problem = found.problem
    scales = problem.slopes(found.x)
    covariance = posterior.covariance / np.outer(scales, scales)
    values, vectors = np.linalg.eigh(np.linalg.inv(covariance) - np.eye(len(scales)))
    # Draws scatter, but information is never negative.
    return from_information(problem.names, (vectors * np.maximum(values, 0.0)) @ vectors.T)
