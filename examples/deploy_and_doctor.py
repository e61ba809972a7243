"""A policy on a robot, and whether the interface between them is as the policy expects.

Run:  python examples/deploy_and_doctor.py [--robot ADDRESS]

The robot is stand-in hardware, a separate process. On a robot of yours, take the ladder of trust
first, one `step=` after the other: replay, shadow, limited, full.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import sim2real as s2r

BUNDLES = Path(__file__).parent / "bundles"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", default="unit:7", help="another unit of stand-in hardware")
    robot = parser.parse_args().robot
    folder = Path(tempfile.mkdtemp())
    # A copy, because a deployment writes its record into the bundle.
    bundle = shutil.copytree(BUNDLES / "pendulum-swingup", folder / "bundle")

    dry = s2r.deploy(bundle, robot=robot, seconds=1.0)
    print(f"dry run on {dry.robot} {dry.serial}: nothing was sent")

    # `force` skips the missing steps of the ladder; the record says so.
    done = s2r.deploy(
        bundle, robot=robot, execute=True, person="me", force=True, trials=3, out=folder / "out"
    )
    print(f"{sum(trial.outcome == 'success' for trial in done.trials)} of 3 trials succeeded")

    diagnosis = s2r.diagnose(bundle, folder / "out")
    for finding in diagnosis.findings:
        print(f"{finding.fault}: {finding.evidence} Remedy: {finding.remedy}")
    print(diagnosis.physics)


if __name__ == "__main__":
    main()
