"""What is done with results: `python -m benchmarks compare OLD.json NEW.json`, `python -m
benchmarks machine_code OLD_CHECKOUT NEW_CHECKOUT`, and `python -m benchmarks report` for the
documents. And three that measure: `python -m benchmarks peers`, `seeds` and `record`.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import compare, machine_code, peers, record, report, seeds


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the command that was named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for module in (compare, machine_code, report, peers, seeds, record):
        command = commands.add_parser(
            module.__name__.rpartition(".")[2], description=module.__doc__
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    given = parser.parse_args(arguments)
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())
