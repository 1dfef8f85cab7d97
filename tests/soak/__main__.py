"""usage: python tests/soak --help"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from soak.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
