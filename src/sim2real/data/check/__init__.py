"""Faults of recorded logs that would spoil identification and training: found and repaired."""

from sim2real.data.check.all_checks import check_episode
from sim2real.data.check.bad_values import bad_samples
from sim2real.data.check.log_fault import LogFault
from sim2real.data.check.repair import repair_episode
from sim2real.data.check.thresholds import CheckThresholds

__all__ = ["CheckThresholds", "LogFault", "bad_samples", "check_episode", "repair_episode"]
