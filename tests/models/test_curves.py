"""What is special to lines and circles. `test_base.py` tests what all families have."""

import numpy as np

from ruzhash_cv.models import Circles


def test_three_points_on_a_line_make_no_circle() -> None:
    samples = np.array([[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    models, owner = Circles().solve(samples)
    assert (len(models), owner.tolist()) == (1, [1])


def test_a_circle_has_its_centre_and_radius_far_from_the_origin() -> None:
    angles = np.linspace(0.0, 6.0, 9)
    points = np.array([5e6, -4e6]) + 3.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(Circles().fit(points, np.ones((1, 9))), [[5e6, -4e6, 3.0]], rtol=1e-9, atol=1e-6)


def test_fitted_again_a_short_arc_has_less_bias() -> None:
    """The first fit makes circles of noisy arcs too small. Steps towards the least squares of distances mend most of it."""
    rng, radii = np.random.default_rng(0), []
    for _ in range(200):
        angles, away = rng.uniform(0, 1.5, 60), 1.0 + 0.03 * rng.normal(size=60)
        points = away[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        fits = [Circles().fit(points, np.ones((1, 60)))]
        for _ in range(5):
            fits.append(Circles().fit(points, np.ones((1, 60)), fits[-1]))
        radii.append([fits[0][0, 2], fits[-1][0, 2]])
    once, again = np.abs(np.median(radii, axis=0) - 1.0)
    assert again < 0.3 * once
