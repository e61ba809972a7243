"""The first thing a new user runs: the main job from end to end on a laptop.

`sim2real demo` closes the gap between a policy and a stand-in pendulum, and writes a report.

>>> from sim2real.demo import DemoConfig
>>> DemoConfig().unit
2028
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = ["DemoConfig", "demo"]

if TYPE_CHECKING:
    from sim2real.demo.demo_config import DemoConfig
    from sim2real.demo.walkthrough import demo
else:
    __getattr__, __dir__ = attach(__name__, __file__)
