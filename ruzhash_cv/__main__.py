"""The command line as ``python -m ruzhash_cv``."""

import sys

from ruzhash_cv_command import main

if __name__ == "__main__":
    sys.exit(main())
