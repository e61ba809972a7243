"""TODO."""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Diagnosis",
    "DoctorConfig",
    "Fault",
    "GraphInterface",
    "diagnose",
]

if TYPE_CHECKING:
    from sim2real.doctor.doctor import diagnose
    from sim2real.doctor.doctor_config import DoctorConfig
    from sim2real.doctor.findings import Diagnosis, Fault
    from sim2real.doctor.graph_interface import GraphInterface
else:
    __getattr__, __dir__ = attach(__name__, __file__)
