"""Draws the answers of docs/calibration.md, whose truth is known, and their figure.

Writes docs/calibration-runs.jsonl and docs/calibration.svg. An answer that states s is right with the probability `truth(s)`.
"""

import json
import math
import random
import sys

CASES, SEED, TARGET, RISK = 100, 110, 0.9, 0.1
STATED = [round(0.5 + 0.05 * step, 2) for step in range(10)]
# The share of each stated confidence: (k/10)^2 is the distribution function of the beta distribution with 2 and 1.
SHARE = {s: ((k + 1) ** 2 - k**2) / 100 for k, s in enumerate(STATED)}


def truth(s):
    return 0.5 + 0.48 * ((s - 0.5) / 0.45) ** 0.8


def draw(seed, cases=CASES):
    source = random.Random(seed)
    runs = []
    for _ in range(cases):
        s = round(0.5 + 0.05 * min(9, int(10 * source.betavariate(2, 1))), 2)
        runs.append((s, source.random() < truth(s)))
    return runs


def above(runs, least):
    accepted = [right for s, right in runs if s >= least]
    return sum(accepted), len(accepted)


def true_above(least):
    accepted = [s for s in STATED if s >= least]
    return sum(SHARE[s] * truth(s) for s in accepted) / sum(SHARE[s] for s in accepted)


def naive(runs):
    """Returns the lowest threshold that reached the target on these runs."""
    levels = sorted({s for s, _ in runs})
    reached = [s for s in levels if above(runs, s)[0] >= TARGET * above(runs, s)[1]]
    return reached[0] if reached else None


def tested(runs):
    """Returns the threshold of `cog calibrate`: the last one, from the highest, whose exact test succeeds."""
    found = None
    for s in sorted({s for s, _ in runs}, reverse=True):
        right, cases = above(runs, s)
        if TARGET**cases > RISK:
            continue
        tail = sum(math.comb(cases, k) * TARGET**k * (1 - TARGET) ** (cases - k) for k in range(right, cases + 1))
        if tail > RISK:
            break
        found = s
    return found


def broken(threshold_of, draws=2000):
    """Returns how often the accepted answers are right less often than promised."""
    thresholds = [threshold_of(draw(seed)) for seed in range(draws)]
    return sum(1 for s in thresholds if s is not None and true_above(s) < TARGET) / draws


def svg(runs):
    width, height, left, top, right, bottom = 640, 320, 56, 40, 16, 44
    x = lambda s: left + (s - 0.5) / 0.45 * (width - left - right)
    y = lambda share: top + (1 - share) / 0.2 * (height - top - bottom)
    line = lambda points: " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
    sample = [(s, above(runs, s)[0] / above(runs, s)[1]) for s in STATED if above(runs, s)[1]]
    real = [(s, true_above(s)) for s in STATED]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">',
        "<title>Share of right answers above each threshold: on the 100 cases, and in truth</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for share in [0.8, 0.85, 0.9, 0.95, 1.0]:
        color = "#c0392b" if share == TARGET else "#dddddd"
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(share):.1f}" y2="{y(share):.1f}" stroke="{color}"/>')
        parts.append(f'<text x="{left - 8}" y="{y(share) + 4:.1f}" text-anchor="end" fill="#333333">{share:.0%}</text>')
    for s in STATED:
        parts.append(f'<text x="{x(s):.1f}" y="{height - bottom + 18}" text-anchor="middle" fill="#333333">{s:.2f}</text>')
    parts.append(f'<text x="{(left + width - right) / 2:.0f}" y="{height - 8}" text-anchor="middle" fill="#333333">accepted from this stated confidence</text>')
    parts.append(f'<polyline points="{line(sample)}" fill="none" stroke="#2c6fbb" stroke-width="2"/>')
    parts.append(f'<polyline points="{line(real)}" fill="none" stroke="#222222" stroke-width="2" stroke-dasharray="6 4"/>')
    for name, s, color in [("naive", naive(runs), "#c0392b"), ("cog calibrate", tested(runs), "#1e8449")]:
        parts.append(f'<line x1="{x(s):.1f}" x2="{x(s):.1f}" y1="{top}" y2="{height - bottom}" stroke="{color}" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{x(s):.1f}" cy="{y(true_above(s)):.1f}" r="5" fill="{color}"/>')
        anchor = "middle" if x(s) < width * 0.7 else "end"
        parts.append(f'<text x="{x(s) + 6:.1f}" y="{top - 8}" text-anchor="{anchor}" fill="{color}">{name}: {true_above(s):.0%} in truth</text>')
    parts.append(f'<text x="{width - right}" y="{height - bottom - 24}" text-anchor="end" fill="#2c6fbb">on the 100 cases</text>')
    parts.append(f'<text x="{width - right}" y="{height - bottom - 8}" text-anchor="end" fill="#222222">in truth (dashed)</text>')
    return "\n".join(parts + ["</svg>", ""])


if __name__ == "__main__":
    runs = draw(SEED)
    with open("docs/calibration-runs.jsonl", "w") as file:
        for case, (s, is_right) in enumerate(runs, 1):
            file.write(json.dumps({"case": f"t{case}", "confidence": s, "right": is_right}) + "\n")
    with open("docs/calibration.svg", "w") as file:
        file.write(svg(runs))
    for name, of in [("naive", naive), ("tested", tested)]:
        s = of(runs)
        right, cases = above(runs, s)
        print(f"{name}: {s}, {right} of {cases}, in truth {true_above(s):.3f}, broken in {broken(of):.3f} of draws", file=sys.stderr)
