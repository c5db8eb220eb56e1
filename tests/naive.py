"""Readable NumPy twins of the kernels: each says in a few lines what its kernel has to return."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import scipy.stats
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

WORD = 1 << 64
#: The hash of a row that no component passes in.
SINK = -1


# Matches


def duplicate_groups(data: Array, radius: float) -> Rows:
    """Row by row, one that is in no group yet leads a new group: all such rows within the radius in every coordinate."""
    groups = np.full(len(data), -1)
    for row in range(len(data)):
        if groups[row] < 0:
            near = (np.abs(data - data[row]) <= radius).all(axis=1)
            groups[near & (groups < 0)] = groups.max() + 1
    return groups


def match_weights(groups: Rows, keypoints: Rows) -> Array:
    """One for a group, shared by its members; then divided by the larger sum of weights at either keypoint, if above one."""
    shares = np.array([1.0 / np.sum(groups == group) for group in groups])
    sums = [[shares[numbers == number].sum() for number in numbers] for numbers in keypoints]
    return shares / np.max([np.ones(len(groups)), *sums], axis=0)


# Likelihoods and probabilities of matches


def log_likelihood(squared: Array, weights: Array, widest: float, codimension: int, steps: int, prior: float) -> float:
    """Of the matches of one model: Gaussians of three scales, each a third of the one before, whose shares EM estimates.

    Densities are ratios to that of mismatches. Weightless matches, and those beyond exp(-12) by the widest scale, do not count.
    """
    near = (squared / (2 * widest**2) < 12.0) & (weights > 0.0)
    scales = 3.0 ** np.arange(3)
    terms = 3.0**codimension * scales[:, None] ** codimension
    terms = terms * np.exp(-squared[near] * scales[:, None] ** 2 / (2 * widest**2))
    start = np.full(3, 1 / 3)
    for _ in range(steps):
        counts = (start[:, None] * terms / (1.0 + start @ terms)) @ weights[near] + prior
        start = counts / counts.sum()
    return float(weights[near] @ np.log(1.0 + start @ terms))


def densities(
    distances: Array, structures: Rows, motions: Rows, across: Array, along: Array, heights: Array, powers: Rows, noise_factors: Array
) -> Array:  # fmt: skip
    """Of each component, Gaussians of the distances to its structure, or across and along the epipolar lines of its motion.

    Those of matches are wider by each match's factor of noise, and as much lower in each of as many coordinates as `powers` says.
    """
    rows, distances = [], np.fmin(distances, 1e9)
    components = zip(structures, motions, across, along, heights, powers, strict=True)
    for structure, motion, *scales, height, power in components:
        if motion >= 0:
            off = distances[:, motion]
            along_line = np.sqrt(np.maximum(distances[:, structure] ** 2 - off**2, 0.0))
            away = np.hypot(off / scales[0], along_line / scales[1])
        else:
            away = distances[:, structure] / scales[1]
        if power > 0:
            away, height = away / noise_factors, height / noise_factors**power
        rows.append(np.where(away < 9.0, height * np.exp(-(np.fmin(away, 9.0) ** 2) / 2), 0.0))
    return np.array(rows)


def shares(ratios: Array, weights: Array, n_steps: int, prior: float, start: Array) -> Array:
    """EM: what each component is responsible for, as a share of the sum; the last one has the ratio 1 everywhere."""
    terms = np.vstack([ratios, np.ones(len(weights))])
    for _ in range(n_steps):
        counts = (start[:, None] * terms / (start @ terms)) @ weights + prior
        start = counts / counts.sum()
    return start


def probabilities(ratios: Array, shares: Array, structures: Rows, true: Mask, n_structures: int) -> Array:
    """Bayes' rule: of each structure the sum over its components of true matches."""
    terms = shares[:, None] * np.vstack([ratios, np.ones(ratios.shape[1])])
    posteriors = terms / terms.sum(axis=0)
    own = [posteriors[:-1][true & (structures == item)].sum(axis=0) for item in range(n_structures)]
    return np.array(own).reshape(n_structures, -1).T


# Samples


def has_repeated_points(sample: Array, min_spread: float) -> bool:
    """Whether two points of a sample (size, 4) are nearer than `min_spread` in x and in y of one image."""
    pairs, images = itertools.combinations(sample, 2), (slice(2), slice(2, 4))
    return any((np.abs(a[image] - b[image]) < min_spread).all() for a, b in pairs for image in images)


def is_collinear(sample: Array, min_spread: float) -> bool:
    """Four points: three of one image lie within half of `min_spread` of a line. More: all of one image do, by root mean square."""
    images = sample[:, :2], sample[:, 2:]
    if len(sample) > 4:
        return any(np.linalg.eigvalsh(np.cov(points.T, bias=True))[0] < (0.5 * min_spread) ** 2 for points in images)
    threes = [list(corners) for corners in itertools.combinations(range(4), 3)]
    return any(height_of(points[corners]) < 0.5 * min_spread for points in images for corners in threes)


def height_of(triangle: Array) -> float:
    """The height above the longest side."""
    sides = [np.linalg.norm(a - b) for a, b in itertools.combinations(triangle, 2)]
    return abs(double_area(triangle)) / max(sides)


def double_area(triangle: Array) -> float:
    """Twice the area, negative where the corners are named the other way round."""
    return float(np.linalg.det(np.column_stack([triangle, np.ones(3)])))


def area_ratios(sample: Array) -> Array:
    """The ratios of signed areas, first image to second, of the triangles of a sample (size, 4)."""
    triples = [list(corners) for corners in itertools.combinations(range(len(sample)), 3)]
    return np.array([double_area(sample[rows, :2]) / double_area(sample[rows, 2:]) for rows in triples])


def is_flipped(sample: Array) -> bool:
    """Some triangles turn the same way in both images and others do not."""
    signs = np.sign(area_ratios(sample))
    return bool((signs != signs[0]).any())


def affine_deviation(sample: Array) -> float:
    """The largest ratio of areas by the smallest: 1 for an affine map."""
    ratios = np.abs(area_ratios(sample))
    return float(ratios.max() / ratios.min())


# Models


def homogeneous(points: Array) -> Array:
    return np.column_stack([points, np.ones(len(points))])


def apply(H: Array, points: Array) -> Array:
    mapped = homogeneous(points) @ H.T
    return mapped[:, :2] / mapped[:, 2:]


def transfer_error(data: Array, H: Array) -> Array:
    """The larger of |x2 - H x1| and |x1 - H^-1 x2|."""
    forward = np.linalg.norm(data[:, 2:] - apply(H, data[:, :2]), axis=1)
    backward = np.linalg.norm(data[:, :2] - apply(np.linalg.inv(H), data[:, 2:]), axis=1)
    return np.maximum(forward, backward)


def sampson_distance(data: Array, F: Array) -> Array:
    """|x2' F x1| / sqrt((F x1)_1^2 + (F x1)_2^2 + (F' x2)_1^2 + (F' x2)_2^2)."""
    x1, x2 = homogeneous(data[:, :2]), homogeneous(data[:, 2:])
    lines2, lines1 = x1 @ F.T, x2 @ F
    squares = (lines2[:, :2] ** 2).sum(axis=1) + (lines1[:, :2] ** 2).sum(axis=1)
    return np.abs((x2 * lines2).sum(axis=1)) / np.sqrt(squares)


def ray_transfer_error(data: Array, H: Array) -> Array:
    """The larger of the distances across both rays, H X1 from X2 and H^-1 X2 from X1; infinite if they point apart."""
    first, second, upright = data[:, 4:7], data[:, 7:10], H * np.sign(np.linalg.det(H))
    errors = []
    for source, target, matrix in ((first, second, upright), (second, first, np.linalg.inv(upright))):
        mapped = source @ matrix.T
        across = np.linalg.norm(np.cross(mapped, target), axis=1) / np.linalg.norm(mapped, axis=1)
        errors.append(np.where((mapped * target).sum(axis=1) > 0.0, across, np.inf))
    return np.maximum(*errors)


def ray_sampson_distance(data: Array, E: Array) -> Array:
    """|X2' E X1| / sqrt(|E X1|^2 + |E' X2|^2)."""
    x1, x2 = data[:, 4:7], data[:, 7:10]
    return np.abs((x2 * (x1 @ E.T)).sum(axis=1)) / np.sqrt(((x1 @ E.T) ** 2 + (x2 @ E) ** 2).sum(axis=1))


def last_right_vector(system: Array) -> Array:
    """The last right singular vector, which of few equations is in their null space."""
    return np.linalg.svd(system, full_matrices=len(system) < system.shape[1])[2][-1]


def normaliser(points: Array, weights: Array) -> Array:
    """The similarity to a centroid of 0 and a root mean square distance of sqrt(2) from it."""
    centre = weights @ points / weights.sum()
    s = math.sqrt(2.0 / (weights @ ((points - centre) ** 2).sum(axis=1) / weights.sum()))
    return np.array([[s, 0, -s * centre[0]], [0, s, -s * centre[1]], [0, 0, 1]])


def fit_homography(data: Array, weights: Array) -> Array:
    """The normalised direct linear transform (Hartley and Zisserman, algorithm 4.2)."""
    T1, T2 = normaliser(data[:, :2], weights), normaliser(data[:, 2:], weights)
    x1, x2 = homogeneous(data[:, :2]) @ T1.T, homogeneous(data[:, 2:]) @ T2.T
    zero, root = np.zeros_like(x1), np.sqrt(weights)[:, None]
    first, second = np.hstack([x1, zero, -x2[:, :1] * x1]), np.hstack([zero, x1, -x2[:, 1:2] * x1])
    H = last_right_vector(np.vstack([root * first, root * second])).reshape(3, 3)
    return of_unit_norm(np.linalg.inv(T2) @ H @ T1)


def fit_fundamental_matrix(data: Array, weights: Array) -> Array:
    """The normalised 8-point algorithm (Hartley and Zisserman, algorithm 11.1)."""
    T1, T2 = normaliser(data[:, :2], weights), normaliser(data[:, 2:], weights)
    x1, x2 = homogeneous(data[:, :2]) @ T1.T, homogeneous(data[:, 2:]) @ T2.T
    system = np.sqrt(weights)[:, None] * (x2[:, :, None] * x1[:, None, :]).reshape(-1, 9)
    u, s, v = np.linalg.svd(of_rank_two(last_right_vector(system), system.T @ system))
    return of_unit_norm(T2.T @ (u * [s[0], s[1], 0.0]) @ v @ T1)


def fit_rays(name: str, data: Array, weights: Array, matrix: Array) -> Array:
    """The least squares of X2 x HX1 or X2' F X1, over gradients of a matrix, in coordinates of equal moments in every direction."""
    first, second = data[:, 4:7], data[:, 7:10]
    square = np.square(first @ matrix.T).sum(axis=1)
    parts = np.einsum("ni,nj->nij", second, second)
    if name == "homography":
        parts = np.square(second).sum(axis=1)[:, None, None] * np.eye(3) - parts
    else:
        square = square + np.square(second @ matrix).sum(axis=1)
    weights = weights / square
    moments1 = np.einsum("n,nkk,ni,nj->ij", weights, parts, first, first)
    moments2 = np.einsum("n,nij,nk->ij", weights, parts, first**2)
    into1, into2 = (np.linalg.inv(np.linalg.cholesky(moments)) for moments in (moments1, moments2))
    form = np.zeros((9, 9))
    for weight, part, x in zip(weights, parts, first @ into1.T, strict=True):
        form += weight * np.kron(into2 @ part @ into2.T, np.outer(x, x))
    fitted = np.linalg.eigh(form)[1][:, 0]
    if name != "homography":
        u, s, v = np.linalg.svd(of_rank_two(fitted, form))
        fitted = (u * [s[0], s[1], 0.0]) @ v
    return of_unit_norm(into2.T @ fitted.reshape(3, 3) @ into1)


def step_essential_matrix(data: Array, weights: Array, E: Array, damping: float) -> Array:
    """A damped Gauss-Newton step of Sampson distances over rotations of both sides, whose gradients are differences."""

    def moved(step: Array) -> Array:
        half = crossed(step[:3]) / 2, crossed(step[3:]) / 2
        left, right = (np.linalg.solve(np.eye(3) - cross, np.eye(3) + cross) for cross in half)
        return left @ E @ right

    def distances(matrix: Array) -> Array:
        signs = np.sign(((data[:, 4:7] @ matrix.T) * data[:, 7:10]).sum(axis=1))
        return signs * ray_sampson_distance(data, matrix)

    gradients = np.array([(distances(moved(step)) - distances(moved(-step))) / 2e-6 for step in 1e-6 * np.eye(6)]).T
    gram, slope = gradients.T @ (weights[:, None] * gradients), gradients.T @ (weights * distances(E))
    damped = gram + (damping / 6.0 + 1e-12) * np.trace(gram) * np.eye(6)
    return moved(-np.linalg.solve(damped, slope))


def crossed(vector: Array) -> Array:
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def step_fundamental_matrix(data: Array, weights: Array, F: Array) -> Array:
    """A Gauss-Newton step of Sampson distances, whose gradients are differences, in normalised coordinates."""
    T1, T2 = normaliser(data[:, :2], weights), normaliser(data[:, 2:], weights)
    x1, x2 = homogeneous(data[:, :2]), homogeneous(data[:, 2:])

    def distances(f: Array) -> Array:
        line2, line1 = (matrix := T2.T @ f.reshape(3, 3) @ T1) @ x1.T, matrix.T @ x2.T
        return (x2.T * line2).sum(axis=0) / np.sqrt((line2[:2] ** 2).sum(axis=0) + (line1[:2] ** 2).sum(axis=0))

    f = of_unit_norm(np.linalg.inv(T2).T @ F @ np.linalg.inv(T1)).ravel()
    gradients = np.array([(distances(f + step) - distances(f - step)) / 2e-6 for step in 1e-6 * np.eye(9)]).T
    gram = gradients.T @ (weights[:, None] * gradients)
    cost = gram + np.trace(gram) * np.outer(f, f)
    moved = of_unit_norm(f - np.linalg.solve(cost, gradients.T @ (weights * distances(f))))
    u, s, v = np.linalg.svd(of_rank_two(moved, gram))
    return of_unit_norm(T2.T @ (u * [s[0], s[1], 0.0]) @ v @ T1)


def of_rank_two(f: Array, gram: Array) -> Array:
    """Two steps to det F = 0, each of least f'Gf across the least vector (Kanatani and Sugaya 2010)."""
    cost = gram + np.trace(gram) * np.outer(f, f)
    for _ in range(2):
        a, b, c = f.reshape(3, 3)
        cofactors = np.concatenate([np.cross(b, c), np.cross(c, a), np.cross(a, b)])
        step = np.linalg.solve(cost, cofactors)
        f = f - np.linalg.det([a, b, c]) / (cofactors @ step) * step
    return f.reshape(3, 3)


def of_unit_norm(matrix: Array) -> Array:
    return matrix / np.linalg.norm(matrix)


def paired_up(data: Array, pairs: Array, distance: float, most: int) -> Array:
    """Return rows of the first point of one correspondence and the second of another, if both are apart from the other's."""
    one, other = data[pairs[0]], data[pairs[1]]
    apart = np.abs(one - other) >= distance
    rows = np.where(np.isin(np.arange(data.shape[1]), [2, 3, 7, 8, 9]), other, one)
    return rows[apart[:, :2].any(axis=1) & apart[:, 2:4].any(axis=1)][:most]


def plane_through(first: Array, second: Array) -> Array:
    """Return the homography (9,), of unit norm, with X2 x H X1 = 0."""
    system = [np.kron(crossed(x2), x1) for x1, x2 in zip(first, second, strict=True)]
    return last_right_vector(np.vstack(system)).ravel()


def best_pose(
    E: Array, data: Array, weights: Array, squared: Array, reach: float, far: float
) -> tuple[Array, Array, Array]:
    """Return the one of four poses of most weight in front of both cameras (Hartley and Zisserman, 9.6.2), and residuals of rows there.

    The squared residuals of rows behind a camera are infinite, unless these are `far`: as near to where they would be infinitely far.
    """
    one, other, translation = cv2.decomposeEssentialMat(E.reshape(3, 3))
    poses = [(turn, sign * translation.ravel()) for turn in (one, other) for sign in (1.0, -1.0)]
    first, second = data[:, 4:7], data[:, 7:10]
    seen = []
    for turn, direction in poses:
        turned = first @ turn.T
        sampson = np.linalg.norm(np.cross(turned, second), axis=1) / np.hypot(*np.linalg.norm([first, second], axis=2))
        is_far = ((turned * second).sum(axis=1) > 0.0) & (sampson < far)
        seen.append(np.where(in_front(turn, direction, first, second) | is_far, squared, np.inf))
    best = int(np.argmax([weights @ np.maximum(0.0, 1.0 - each / reach**2) for each in seen]))
    return *poses[best], seen[best]


def without_beyond(
    points: Array, weights: Array, voting: Array, reach: float, F: Array, image: Array, others: Array, squared: Array
) -> Array:
    """Return squared residuals (N,) of other points (6, N), infinite beyond the epipole, if this lies in the image."""
    epipole = last_right_vector(F.T)

    def sides(pairs: Array) -> Array:
        lines, through = pairs[:3].T @ F.T, np.cross(epipole, pairs[3:].T)
        cosines = (lines * through).sum(axis=1) / np.linalg.norm(lines, axis=1) / np.linalg.norm(through, axis=1)
        return np.sign(cosines) * (np.abs(cosines) > 0.5)

    place = epipole[:2] / epipole[2]
    if ((place < image[0]) | (place > image[1])).any():
        return squared
    right = sides(points) @ (weights * np.maximum(0.0, 1.0 - voting / reach**2))
    return np.where(sides(others) * right < 0.0, np.inf, squared)


def in_front(rotation: Array, translation: Array, first: Array, second: Array) -> Mask:
    """Return whether depths along both rays, by least squares, are above 0."""
    systems = [np.column_stack([rotation @ x1, -x2]) for x1, x2 in zip(first, second, strict=True)]
    depths = [np.linalg.lstsq(system, -translation, rcond=None)[0] for system in systems]
    return np.asarray((np.array(depths).reshape(-1, 2) > 0.0).all(axis=1))


FITS = {"homography": fit_homography, "fundamental": fit_fundamental_matrix}
RESIDUALS = {"homography": transfer_error, "fundamental": sampson_distance}


def factor_of_equations(name: str, data: Array, matrix: Array) -> Array:
    """The squared factor by which the residual of a family's equations exceeds that of the geometry."""
    x1, x2 = homogeneous(data[:, :2]), homogeneous(data[:, 2:])
    if name == "homography":
        return (x1 @ matrix[2]) ** 2
    return ((x1 @ matrix.T)[:, :2] ** 2).sum(axis=1) + ((x2 @ matrix)[:, :2] ** 2).sum(axis=1)


def student_weights(residuals: Array, weights: Array, codimension: int, n: float) -> Array:
    """Matches' weights times those of the multivariate t of n degrees of freedom with the same median residual."""
    # The squared length of such a vector over its dimension has an F law.
    scale = np.median(residuals**2) / (codimension * scipy.stats.f.ppf(0.5, codimension, n))
    return weights / (1.0 + residuals**2 / (n * scale))


def upper_median(squared: Array) -> float:
    """Of what is finite, 0 of nothing."""
    finite = np.sort(squared[squared < np.inf])
    return float(finite[len(finite) // 2]) if len(finite) else 0.0


# Preferences


def embed(residuals: Array, sigmas: Sequence[float], limit: float, groups: Rows, sample_groups: Rows) -> Array:
    """Preferences (m, n): the mean Gaussian of the noise scales up to a limit, and none for the groups of the own sample."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaussians = [np.exp(-(residuals**2) / (2.0 * sigma**2)) for sigma in sigmas]
        preferences = np.where(residuals <= limit, np.mean(gaussians, axis=0), 0.0)
    own = (groups[None, :, None] == sample_groups[:, None, :]).any(axis=2)
    return np.where(own, 0.0, preferences)


def ruzicka_distance(p: Array, q: Array) -> float:
    union = np.maximum(p, q).sum()
    return float(1 - np.minimum(p, q).sum() / union) if union > 0 else 1.0


def tanimoto_distance(p: Array, q: Array) -> float:
    union = p @ p + q @ q - p @ q
    return float(1 - p @ q / union) if union > 0 else 1.0


# RuzHash and its forest


def mix(key: int, counter: int) -> int:
    """SplitMix64's finaliser in Python's own integers."""
    z = (int(key) + (int(counter) + 1) * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def passing(row: Array, key: int) -> list[tuple[int, int]]:
    """The components above their thresholds, the first 24 of a component's 64 bits, and with them its last 32 bits."""
    bits = [mix(key, component) for component in range(len(row))]
    return [(b % 2**32, i) for i, b in enumerate(bits) if (b >> 40) / 2**24 < float(row[i])]


def hash_row(row: Array, key: int) -> int:
    """The component of smallest rank among those above their thresholds."""
    return min(passing(row, key), default=(0, SINK))[1]


def branch_of(row: Array, key: int, n_branches: int) -> int:
    """The branch of that component in a forest: b times 32 bits are a branch and what remains, whose first bits are the rank."""
    drawn = [divmod(bits * n_branches, 2**32) for bits, _ in passing(row, key)]
    unit = 2 ** n_branches.bit_length()
    return min(((rest // unit, branch) for branch, rest in drawn), default=(0, SINK))[1]


def draw_rows(key: int, n: int, psi: int) -> list[int]:
    """The first steps of a Fisher-Yates shuffle."""
    rows = list(range(n))
    for at in range(psi):
        other = at + int((mix(key, at) >> 11) / 2**53 * (n - at))
        rows[at], rows[other] = rows[other], rows[at]
    return rows[:psi]


def expected_depth(size: int, n_branches: int) -> float:
    """c(n): the depth a random tree would still add to a leaf of `size` rows."""
    if size <= 1:
        return 0.0
    if size <= n_branches:
        return 1.0
    if n_branches == 2:
        return 2 * (math.log(size - 1) + 0.5772156649) - 2 * (size - 1) / size
    return math.log(size) / math.log(n_branches)


def path_length(
    training: Array, psi: int, n_branches: int, tree_key: int, x: Array, own: int | None, sink_credit: bool
) -> float:
    """The path length of a row `x` in one tree; `own`: the training row that it is and that does not count itself."""
    drawn = draw_rows(mix(tree_key, 1), len(training), psi)
    limit = next(depth for depth in itertools.count() if n_branches**depth >= psi)
    key, depth, itself = mix(tree_key, 0), 0, int(own in drawn)
    while depth < limit and len(drawn) - itself >= n_branches:
        branch = branch_of(x, key, n_branches)
        drawn = [row for row in drawn if branch_of(training[row], key, n_branches) == branch]
        if branch == SINK:
            return depth + (expected_depth(len(drawn) - itself, n_branches) if sink_credit else 0.0)
        key, depth = mix(key, branch), depth + 1
    return depth + expected_depth(len(drawn) - itself, n_branches)


# Structures


def greedy_cover(preferences: Array, match_weights: Array, weights: Array, n_wanted: int) -> list[int]:
    """Again and again the model of most weighted preference; it takes half of a match's weight where it is preferred fully."""
    left, chosen = match_weights.copy(), list[int]()
    while len(chosen) < min(n_wanted, len(preferences)):
        gains = (preferences @ left) * weights
        gains[chosen] = -1.0
        if not gains.max() > 0.0:
            break
        chosen.append(int(np.argmax(gains)))
        left /= 1.0 + preferences[chosen[-1]]
    return chosen


def evidence(counts: Array, total: float, background: Array, rules: Sequence[float], n_tried: int) -> list[float]:
    """-ln NFA of one model, one radius after the other; `rules`: sample size, codimension, steps and least weight of an
    annulus, density ratio, and the index of the widest radius.
    """
    size, codimension, annulus_steps, least, ratio, widest = rules
    found = list[float]()
    for at in range(len(background)):
        within, around = counts[: at + 1].sum(), counts[at + 1 : at + 1 + int(annulus_steps)].sum()
        area = math.sqrt(2.0) ** (annulus_steps * codimension) - 1.0
        alpha = min(max(background[at], ratio * max(around, least) / area / total), 1.0 - 1e-9)
        n = total - size
        share, gain = min((within - size) / n, 1.0 - 1e-9), 0.0
        if share > alpha:
            gain = n * (share * math.log(share / alpha) + (1.0 - share) * math.log((1.0 - share) / (1.0 - alpha)))
        found.append(gain - math.log(total * n_tried) if at <= widest else -math.inf)
    return found


def own_share(points: Array, own: Mask, around: Mask, same: float) -> float:
    """The share of own matches among the nearest of these around, but for what is the same keypoint."""
    said, among = list[bool](), np.flatnonzero(around)
    for row in np.flatnonzero(own):
        lengths = np.linalg.norm(points[among] - points[row], axis=1)
        said += list(own[among[lengths > same][np.argsort(lengths[lengths > same])][:1]])
    return float(np.mean(said)) if said else 1.0


def contradicting(data: Array, labels: NDArray[Any], weights: Array, least: int, same: float) -> NDArray[Any]:
    """Matches off planes that jumped over a plane's matches in both images, with few companions."""
    images, off, said = (data[:, :2], data[:, 2:4]), np.flatnonzero(labels < 0), np.zeros(len(data), bool)
    for plane in set(labels[labels >= 0].tolist()):
        on = np.flatnonzero(labels == plane)
        for row in off if len(on) >= least else ():
            lengths = [np.linalg.norm(image - image[row], axis=1) for image in images]
            near = [on[np.argsort(each[on], kind="stable")[:3]] for each in lengths]
            reaches = [each[rows].max() for each, rows in zip(lengths, near, strict=True)]
            jumped = lengths[0][near[1]].min() > reaches[0] and lengths[1][near[0]].min() > reaches[1]
            beside = off[(lengths[0][off] <= reaches[0]) & (lengths[1][off] <= reaches[1])]
            beside = beside[np.maximum(lengths[0], lengths[1])[beside] > same]
            said[row] |= jumped and weights[beside].sum() < 3
    return said


def radius_indices(residuals: Array, radii: Array) -> NDArray[Any]:
    """The index of the first radius that holds each residual; as many as there are radii if none does."""
    return (~(residuals[..., None] <= radii)).sum(axis=-1)
