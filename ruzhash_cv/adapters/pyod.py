"""Left the package."""

from ruzhash_cv._gone import gone

raise ImportError(gone(__name__))
