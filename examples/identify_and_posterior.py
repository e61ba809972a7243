"""What are the robot's mass, damping and delay? A twin identified from logs, and how sure that is.

Run:  python examples/identify_and_posterior.py [--out FOLDER]

`arm_robot` simulates the robot, so the true values are known. The intervals hold only if the model
is right: this twin takes time steps of 2 ms, so its damping comes out 10 % too high.
"""

import argparse
import tempfile
from pathlib import Path

from arm_robot import DAMPING, DELAY_S, MASS_KG, write_log

import sim2real as s2r
from sim2real.randomize import drawn

ARM = Path(__file__).parent / "arm"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to keep the new twin in")
    out = parser.parse_args().out
    folder = Path(tempfile.mkdtemp())
    logs = [write_log(folder / f"run-{seed}.csv", seconds=8, seed=seed) for seed in range(2)]

    found = s2r.identify(ARM, logs, channels=ARM / "channels.toml", starts=2)

    truth = dict(zip(found.values, (MASS_KG, DAMPING, DELAY_S), strict=True))
    for (name, value), std in zip(found.values.items(), found.posterior.std, strict=True):
        print(f"{name}: {value:.3f} ± {1.96 * std:.1g} (true value {truth[name]:.3f})")
    print(f"error on held-back recordings: {found.check.ratio:.2f} times that of the old twin")
    print("three draws from the posterior:")
    for row in drawn(found.twin, "posterior", count=3).tolist():
        print("  " + ", ".join(f"{value:.4f}" for value in row))
    if out is not None:
        found.save(out)
        print(f"saved in {out}: the new twin, and result.json")


if __name__ == "__main__":
    main()
