"""Many pairs, and the programs people run them in; each module imports what it works with when it is called."""

from ruzhash_cv.pipelines.pairs import filter_pairs as filter_pairs
from ruzhash_cv.pipelines.pairs import pair_seed as pair_seed
