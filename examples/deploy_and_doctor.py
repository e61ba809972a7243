"""A policy on a robot, and a look at whether their interface is what the policy was promised.

The robot is stand-in hardware: a process of its own that no twin knows. For yours, say its
address instead of `unit:7`.

    python deploy_and_doctor.py
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import sim2real as s2r

HERE = Path(__file__).parent


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    folder = Path(tempfile.mkdtemp())
    # A copy: what a bundle did on a robot is kept in the bundle.
    bundle = shutil.copytree(HERE / "bundles" / "pendulum-swingup", folder / "bundle")

    dry = s2r.deploy(bundle, robot="unit:7", seconds=1.0)
    print(f"dry run on {dry.robot} {dry.serial}: nothing was sent")

    # `force` skips the steps that a robot of yours should climb first: replay, shadow, limited.
    done = s2r.deploy(
        bundle, robot="unit:7", execute=True, person="me", force=True, trials=3, out=folder / "out"
    )
    print(f"{sum(trial.outcome == 'success' for trial in done.trials)} of 3 trials succeeded")

    diagnosis = s2r.diagnose(bundle, folder / "out")
    for finding in diagnosis.findings:
        print(f"{finding.fault}: {finding.evidence} Remedy: {finding.remedy}")
    print(diagnosis.physics)


if __name__ == "__main__":
    main()
