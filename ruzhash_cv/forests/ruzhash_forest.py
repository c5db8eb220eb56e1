"""The forest's place before it stood beside its hash."""

from ruzhash_cv.forests.ruzhash import RuzHashForest as RuzHashForest
