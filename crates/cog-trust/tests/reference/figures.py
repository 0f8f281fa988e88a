"""Prints generated answers with their statistics, one JSON object a line, as scipy and scikit-learn compute them.

What neither has is computed here in the plainest way. usage: figures.py NUMBER_OF_SETS
"""

import json
import sys
import warnings

import numpy as np
from scipy import optimize, stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

warnings.filterwarnings("ignore")
random = np.random.default_rng(39)
further = np.random.default_rng(40)


def drawn(number):
    """Answers of cases: some with repeats, some with few distinct confidences, some all right."""
    cases = int(random.choice([1, 2, 3, 5, 10, 20, 50, 100, 300]))
    repeats = random.integers(1, 5, cases) if number % 3 == 0 else np.ones(cases, int)
    case = np.repeat(np.arange(cases), repeats)
    random.shuffle(case)
    kind = number % 5
    if kind == 0:
        stated = random.choice([0.2, 0.4, 0.6, 0.8, 1.0], len(case))
    elif kind == 1:
        stated = random.choice([0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0], len(case))
    elif kind == 2:
        stated = random.choice([0.0, 1.0], len(case))
    elif kind == 3:
        stated = np.full(len(case), 0.9)
    else:
        stated = random.beta(3.2, 0.9, len(case))
    slope = random.choice([0.0, 0.5, 1.0, 2.0])
    clipped = np.clip(stated, 0.005, 0.995)
    chance = 1 / (1 + np.exp(-(slope * np.log(clipped / (1 - clipped)) + random.normal())))
    right = random.random(len(case)) < chance
    if number % 17 == 0:
        right[:] = number % 2 == 0
    return case, stated, right.astype(int)


def exact_interval(right, cases):
    low = stats.beta.ppf(0.025, right, cases - right + 1) if right > 1e-6 else 0.0
    high = stats.beta.ppf(0.975, right + 1, cases - right) if cases - right > 1e-6 else 1.0
    return [float(low), float(high)]


def auroc_interval(area, right, wrong):
    """Newcombe's method 5, solved by Brent's method."""
    z = stats.norm.ppf(0.975)

    def error(other):
        pairs = (right + wrong) / 2 - 1
        spread = 1 + pairs * ((1 - other) / (2 - other) + other / (1 + other))
        return abs(other - area) - z * np.sqrt(max(other * (1 - other) / (right * wrong) * spread, 0))

    low = optimize.brentq(error, 0, min(area, 1 - 1e-12), xtol=1e-14) if area > 0 else 0.0
    high = optimize.brentq(error, max(area, 1e-12), 1, xtol=1e-14) if area < 1 else 1.0
    return [float(low), float(high)]


def expected_distance(stated):
    """The mean distance of a sum of independent truths from the sum of their probabilities."""
    pmf = np.array([1.0])
    for p in stated:
        pmf = np.convolve(pmf, [1 - p, p])
    return float(pmf @ np.abs(np.arange(len(pmf)) - stated.sum()))


def calibration(stated, right):
    edges = np.percentile(stated, np.linspace(0, 1, 6) * 100)
    index = np.searchsorted(edges[1:-1], stated)
    bins = [index == number for number in range(5) if (index == number).any()]
    accuracy, mean = calibration_curve(right, stated, n_bins=5, strategy="quantile")
    value = sum(b.sum() * abs(m - a) for b, m, a in zip(bins, mean, accuracy)) / len(stated)
    null = sum(expected_distance(stated[b]) for b in bins) / len(stated)
    return {"bins": [[float(m), float(a)] for m, a in zip(mean, accuracy)], "ece": float(value), "null": null}


def fitted(stated, right, weight):
    clipped = np.clip(stated, 0.005, 0.995)
    logit = np.log(clipped / (1 - clipped))

    def loss(map):
        z = map[0] + map[1] * logit
        return np.sum(weight * (np.logaddexp(0, z) - right * z)) + map[0] ** 2 / 2 + 2 * (map[1] - 1) ** 2

    def slope_of(map):
        error = weight * (1 / (1 + np.exp(-(map[0] + map[1] * logit))) - right)
        return np.array([error.sum() + map[0], (error * logit).sum() + 4 * (map[1] - 1)])

    found = optimize.minimize(loss, [0, 1], jac=slope_of, method="BFGS", options={"gtol": 1e-10})
    return [float(value) for value in optimize.root(slope_of, found.x, tol=1e-13).x]


def fitted_together(columns, right, weight):
    """Several kinds of evidence in one map: the prior of each slope is around an equal share."""
    clipped = np.clip(columns, 0.005, 0.995)
    terms = np.column_stack([np.ones(len(right)), *np.log(clipped / (1 - clipped))])
    share = 1 / len(columns)
    mean = np.array([0.0] + [share] * len(columns))
    precision = np.array([1.0] + [4.0] * len(columns))

    def loss(map):
        z = terms @ map
        return np.sum(weight * (np.logaddexp(0, z) - right * z)) + np.sum(precision * (map - mean) ** 2) / 2

    def slope_of(map):
        error = weight * (1 / (1 + np.exp(-(terms @ map))) - right)
        return terms.T @ error + precision * (map - mean)

    found = optimize.minimize(loss, mean, jac=slope_of, method="BFGS", options={"gtol": 1e-10})
    return [float(value) for value in optimize.root(slope_of, found.x, tol=1e-13).x]


def together(case, right, weight):
    """Two kinds of evidence of the same answers, with the log loss of a cross-validation in ten parts, by case."""
    columns = np.round(further.beta(2, 1, (2, len(case))), 3)
    order = {name: number for number, name in enumerate(dict.fromkeys(case.tolist()))}
    fold = np.array([order[name] % 10 for name in case.tolist()])
    losses = []
    for kinds in ([0], [1], [0, 1]):
        probability = np.empty(len(case))
        for part in range(10):
            rest = fold != part
            map = fitted_together(columns[kinds][:, rest], right[rest], weight[rest])
            clipped = np.clip(columns[kinds][:, ~rest], 0.005, 0.995)
            z = map[0] + np.array(map[1:]) @ np.log(clipped / (1 - clipped))
            probability[~rest] = 1 / (1 + np.exp(-z))
        losses.append(float(log_loss(right, probability, sample_weight=weight, labels=[0, 1])))
    return {"evidence": columns.T.tolist(), "log_losses": losses, "map": fitted_together(columns, right, weight)}


def threshold(case, stated, right, target, risk):
    """Fixed-sequence testing on the first run of each case, with the quantile of the beta distribution."""
    first = np.unique(case, return_index=True)[1]
    stated, right = stated[first], right[first]
    fewest = next(n for n in range(1, 100_000) if stats.beta.ppf(risk, n, 1) >= target)
    best = None
    for value in np.unique(stated)[::-1]:
        accepted = stated >= value
        n, k = int(accepted.sum()), int(right[accepted].sum())
        if n < fewest:
            continue
        if k == 0 or stats.beta.ppf(risk, k, n - k + 1) < target:
            break
        best = [float(value), n]
    return best


def drift(stated):
    """Compares every other answer with the others, in the precision of a calibration file."""
    one, other = np.round(stated[::2], 4), np.round(stated[1::2], 4)
    if len(other) == 0:
        return None
    found = stats.ks_2samp(one, other, method="exact")
    return [float(found.statistic), float(found.pvalue)]


def figures(case, stated, right):
    counts = np.bincount(case)
    weight = 1 / counts[case]
    cases = len(counts)
    is_mixed = 0 < right.sum() < len(right)
    accuracy = float((weight * right).sum() / cases)
    brier = float(brier_score_loss(right, stated, sample_weight=weight))
    area = float(roc_auc_score(right, stated, sample_weight=weight)) if is_mixed else None
    number_right = float((weight * right).sum())
    found = {
        "cases": cases,
        "accuracy": accuracy,
        "interval": exact_interval(number_right, cases),
        "stated_mean": float(np.average(stated, weights=weight)),
        "brier": brier,
        "skill": 1 - brier / (accuracy * (1 - accuracy)) if is_mixed else None,
        "log_loss": float(log_loss(right, stated, sample_weight=weight, labels=[0, 1])),
        "auroc": area,
        "auroc_interval": auroc_interval(area, number_right, cases - number_right) if is_mixed else None,
        "map": fitted(stated, right, weight),
        "gates": [[t, r, threshold(case, stated, right, t, r)] for t, r in ((0.8, 0.1), (0.9, 0.1), (0.7, 0.05))],
        "drift": drift(stated),
        "together": together(case, right, weight) if further.random() < 0.2 else None,
        "calibration": calibration(stated, right) if len(case) == cases else None,
    }
    return found


for number in range(int(sys.argv[1])):
    case, stated, right = drawn(number)
    runs = [[int(c), float(s), bool(r)] for c, s, r in zip(case, stated, right)]
    print(json.dumps({"runs": runs, "figures": figures(case, stated, right)}))
