"""hloc and glue-factory are on no package index. `hosts` has as much of each as adapters touch; what is installed comes before it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "hosts"))
