"""How far is a twin from its robot? From CSV logs of your own to the answer.

Run:  python examples/own_robot_from_csv.py [--logs FOLDER]

`arm/` is the twin; `arm/channels.toml` says which column of the logs is which of its channels, in
which unit. Without `--logs`, `arm_robot` simulates the robot and writes a log.
"""

import argparse
import tempfile
from pathlib import Path

from arm_robot import write_log

import sim2real as s2r

ARM = Path(__file__).parent / "arm"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, help="folder of CSV logs")
    logs = parser.parse_args().logs or write_log(Path(tempfile.mkdtemp()) / "run-1.csv")

    gap = s2r.measure_gap(ARM, logs, channels=ARM / "channels.toml")

    print(gap.verdict)
    for channel in gap.channels:
        print(
            f"{channel.name}: off by {channel.error:.2g} {channel.unit} after"
            f" {channel.times_s[-1]:.2g} s, {channel.in_noise:.1f} times its noise"
        )


if __name__ == "__main__":
    main()
