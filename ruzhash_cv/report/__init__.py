"""Pages that show results in a browser, without a network: of one pair, and an index of many. Needs Bokeh, the extra ``html``."""

from ruzhash_cv.report.writing import write_html as write_html
