"""`python -m spgraph` is the command `spgraph`."""

import sys

from spgraph_command import main

if __name__ == "__main__":
    sys.exit(main())
