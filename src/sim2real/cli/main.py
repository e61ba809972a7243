"""The program `sim2real`: runs the verb that its arguments name.

A user's mistake is one line on standard error and exit code 2.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, get_args, get_type_hints

from sim2real import __version__
from sim2real.cli.output import say, say_error, show_log
from sim2real.cli.verbs import Verb, find_verb, help_text
from sim2real.errors import Sim2RealError

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EFBIG)


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if words == ["--version"]:
            say(f"sim2real {__version__}")
            return 0
        found = find_verb(words)
        if found is None:
            say(help_text(words))
            return 0 if words else 2
        options = _options(*found)  # first, so that `--help` loads nothing else
        show_log()
        return found[0].runner(options)
    except Sim2RealError as error:
        say_error(str(error))
        return 2
    except KeyboardInterrupt:
        say_error("interrupted")
        return 130
    except BrokenPipeError:  # as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno in _UNWRITABLE:
            say_error(f"cannot write: {error.strerror} ({error.filename or 'disk'})")
            return 2
        raise


def parse(words: list[str]) -> Any:
    """The options in the words of a verb."""
    found = find_verb(words)
    if found is None:
        raise Sim2RealError("name a verb")
    return _options(*found)


def _options(verb: Verb, words: list[str]) -> Any:
    import tyro

    example = f"sim2real {verb.words} {verb.example}".strip()
    return tyro.cli(
        verb.options,
        prog=f"sim2real {verb.words}",
        description=f"{verb.about}\n\nExample:  {example}",
        args=_gathered(verb.options, words),
    )


def _gathered(options: type[Any], words: list[str]) -> list[str]:
    """Words in which the values of a repeated option follow its first use: tyro keeps one use."""
    several = {
        f"--{name.replace('_', '-')}"
        for name, kind in get_type_hints(options).items()
        if get_args(kind)[-1:] == (...,)
    }
    group: list[str] = []
    groups, by_flag = [group], dict[str, list[str]]()
    for word in words:
        name, _, value = word.partition("=")
        flag = name.replace("_", "-")
        if flag in several:
            if flag not in by_flag:
                groups.append(by_flag.setdefault(flag, [flag]))
            group = by_flag[flag]
            group += [value] if "=" in word else []
            continue
        if word.startswith("--"):
            groups.append(group := [])
        group.append(word)
    return [word for group in groups for word in group]
