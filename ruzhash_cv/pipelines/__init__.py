"""Filter many image pairs, also those of COLMAP and hloc. Optional packages are imported when they are first needed."""

from ruzhash_cv.pipelines.pairs import filter_pairs as filter_pairs
from ruzhash_cv.pipelines.pairs import pair_seed as pair_seed
from ruzhash_cv.pipelines.runs import Summary as Summary
