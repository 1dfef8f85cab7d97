"""`python -m benchmarks renew` measures everything on the machine at hand, `peers`, `seeds` and
`record` some of it; `report` brings the documents up to date, `compare OLD.json NEW.json` compares
results, `machine_code OLD_CHECKOUT NEW_CHECKOUT` CUDA kernels.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import compare, machine_code, peers, record, renew, report, seeds


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the command that was named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for module in (renew, report, compare, peers, seeds, record, machine_code):
        command = commands.add_parser(
            module.__name__.rpartition(".")[2], description=module.__doc__
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    given = parser.parse_args(arguments)
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())
