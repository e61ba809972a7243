"""Interface faults between a policy and its robot, named from a log.

`diagnose` compares what a bundle's contract promises with what logs show: swapped joints, flipped
signs, degrees for radians, delays, a lost normaliser.

>>> from sim2real.doctor import Fault
>>> [fault.value for fault in Fault][:3]
['joints permuted', 'sign flipped', 'degrees for radians']
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Diagnosis",
    "DoctorConfig",
    "DoctorThresholds",
    "Fault",
    "GraphInterface",
    "diagnose",
]

if TYPE_CHECKING:
    from sim2real.doctor.doctor import diagnose
    from sim2real.doctor.doctor_config import DoctorConfig
    from sim2real.doctor.findings import Diagnosis, Fault
    from sim2real.doctor.graph_interface import GraphInterface
    from sim2real.doctor.thresholds import DoctorThresholds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
