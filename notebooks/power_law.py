"""Fits a power law y = c·n^exponent to points, by linear least squares on their logarithms."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    exponent: float
    error: float  # standard error of the exponent
    middle: tuple  # (log n, log y) of a point on the line

    def at(self, n):
        return math.exp(self.middle[1] + self.exponent * (math.log(n) - self.middle[0]))


def fit(points):
    """Fits points (n, y) without those with y = 0. Returns None for fewer than three different n."""
    points = [(math.log(n), math.log(y)) for n, y in points if y]
    if len({x for x, _ in points}) < 3:
        return None
    count = len(points)
    x_mean, y_mean = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    exponent = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread
    left = sum((y - y_mean - exponent * (x - x_mean)) ** 2 for x, y in points)
    return PowerLaw(exponent, math.sqrt(left / max(count - 2, 1) / spread), (x_mean, y_mean))
