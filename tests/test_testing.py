"""What people test their own robots with: faults have the doctor's names."""

from pathlib import Path

import pytest

from sim2real.data import select
from sim2real.doctor.findings import Fault
from sim2real.doctor.graph_interface import GraphInterface
from sim2real.errors import Sim2RealError
from sim2real.policy import Bundle
from sim2real.testing import inject

ROOT = Path(__file__).parents[1]
PENDULUM = ROOT / "examples" / "bundles" / "pendulum-swingup"


def test_a_fault_goes_by_the_doctors_name():
    bundle = Bundle.open(PENDULUM)
    (clean,) = select([ROOT / "tests" / "golden" / "made" / "flown"]).episodes[:1]
    named = inject(bundle, clean, "sign flipped", level=1, seed=3)
    assert named == inject(GraphInterface.of(bundle), clean, Fault.SIGN, level=1, seed=3)
    assert named != clean and "sign flipped" in named.provenance.process
    with pytest.raises(Sim2RealError, match=r"no fault 'sign flip'.*'sign flipped'"):
        inject(bundle, clean, "sign flip", level=1, seed=3)
