"""What one chooses by: Bokeh's widgets beside the figures of a pair. `pair.js` gives them their counts."""

from __future__ import annotations

import math
from typing import Any

from bokeh.models import (
    Button,
    CheckboxButtonGroup,
    CheckboxGroup,
    CustomJSTickFormatter,
    RadioButtonGroup,
    RangeSlider,
    Slider,
)

from ruzhash_cv.report.figures import DIMMED
from ruzhash_cv.report.numbers import PROBABILITY

#: Lines that are drawn at first, and at most; more hide the photographs.
LINES, MOST_LINES = 100, 1000
#: Half the side of a patch, px: the choices, and which of them at first.
PATCHES, PATCH = (12, 24, 48, 96), 1
#: Ends of the slider of residuals, px; those beyond count as at the end.
LEAST_RESIDUAL, LARGEST_RESIDUAL = 0.1, 1000.0


def controls() -> dict[str, Any]:
    """Return the widgets by name."""
    low, high = math.log10(LEAST_RESIDUAL), math.log10(LARGEST_RESIDUAL)
    as_pixels = CustomJSTickFormatter(
        args={"low": low, "high": high},
        code="return tick >= high ? 'any' : tick <= low ? '0 px' : `${(10 ** tick).toPrecision(2)} px`",
    )
    stretched: dict[str, Any] = {"sizing_mode": "stretch_width"}
    return {
        "colour": RadioButtonGroup(labels=["structure", PROBABILITY, "residual"], active=0, **stretched),
        "kinds": CheckboxButtonGroup(labels=["kept", "flagged"], active=[0, 1], **stretched),
        "parts": CheckboxGroup(**stretched),
        "probabilities": RangeSlider(title=PROBABILITY, start=0.0, end=1.0, step=0.01, value=(0.0, 1.0), **stretched),
        "residuals": RangeSlider(
            title="residual", start=low, end=high, step=0.05, value=(low, high), format=as_pixels, **stretched
        ),
        "most_lines": Slider(title="lines at most", start=0, end=MOST_LINES, step=10, value=LINES, **stretched),
        "brightness": Slider(title="brightness", start=0.0, end=1.0, step=0.05, value=DIMMED, **stretched),
        "patch_size": RadioButtonGroup(labels=[f"{2 * half} px" for half in PATCHES], active=PATCH, **stretched),
        "previous": Button(label="‹ less probable"),
        "next": Button(label="more probable ›"),
        "reset": Button(label="whole photographs"),
    }
