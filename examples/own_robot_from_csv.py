"""How far is a twin from its robot? From a CSV log of one's own to the answer.

python own_robot_from_csv.py
"""

import argparse
import tempfile
from pathlib import Path

from arm_robot import write_log

import sim2real as s2r

HERE = Path(__file__).parent


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    folder = Path(tempfile.mkdtemp())
    write_log(folder / "run-1.csv")  # yours lies there already

    # The map says which column is which channel, in which unit; channels have the twin's names.
    logs = s2r.read_logs(folder, channels=HERE / "arm" / "channels.toml")
    gap = s2r.measure_gap(HERE / "arm", logs)

    print(gap.verdict)
    for channel in gap.channels:
        print(
            f"{channel.name}: off by {channel.error:.2g} {channel.unit} after"
            f" {channel.times_s[-1]:.2g} s, {channel.in_noise:.1f} times its noise"
        )


if __name__ == "__main__":
    main()
