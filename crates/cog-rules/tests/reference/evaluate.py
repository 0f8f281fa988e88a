"""A second evaluator of named checks. It shares nothing with the first one but the page docs/checks.md.

Prints the checks as a JSON array, then one line for each random answer: its input, its data, and which checks it passes.
Numbers are exact fractions here, and decimals with up to four places in the answers."""

import json
import random
import sys
import unicodedata
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction


class Absent:
    """The value of a path that selects nothing. It equals null."""


ABSENT = Absent()


class Fails(Exception):
    """The check cannot be evaluated."""


# The language.


def get(value, *steps):
    for step in steps:
        if isinstance(value, dict) and isinstance(step, str) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return ABSENT
    return value


def each(value, *steps):
    """The values of a path in which `*` stands for `[*]`."""
    for at, step in enumerate(steps):
        if step == "*":
            inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
            return [found for one in inner for found in each(one, *steps[at + 1 :])]
        value = get(value, step)
    return [] if value is ABSENT else [value]


def spread(value):
    """The elements of an array that stands where a list is expected."""
    return value if isinstance(value, list) else [] if value is None or value is ABSENT else [value]


def number(value):
    is_number = isinstance(value, (int, Decimal, Fraction)) and not isinstance(value, bool)
    return Fraction(value) if is_number else None


def equal(left, right):
    if left is ABSENT or left is None:
        return right is ABSENT or right is None
    if number(left) is not None or number(right) is not None:
        return number(left) == number(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def less(left, right, or_equal=False):
    if number(left) is not None and number(right) is not None:
        left, right = number(left), number(right)
    elif not (isinstance(left, str) and isinstance(right, str) or isinstance(left, datetime) and isinstance(right, datetime)):
        return False
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return left <= right if or_equal else left < right


def calculate(operation, *values):
    numbers = [number(value) for value in values]
    return None if None in numbers else operation(*numbers)


def over(left, right):
    def divide(left, right):
        if right == 0:
            raise Fails
        return left / right

    return calculate(divide, left, right)


def total(values):
    return calculate(lambda *numbers: sum(numbers, Fraction(0)), *(value for value in values if value is not None))


def extreme(values, is_max):
    values = [value for value in values if value is not None]
    best = ABSENT
    for value in values:
        if not (less(value, value, True)) or best is not ABSENT and not (less(value, best, True) or less(best, value, True)):
            return ABSENT
        if best is ABSENT or (less(best, value) if is_max else less(value, best)):
            best = value
    return best


def unique(values):
    values = [value for value in values if value is not None]
    return not any(equal(one, other) for at, one in enumerate(values) for other in values[:at])


def is_sorted(values):
    values = [value for value in values if value is not None]
    return all(less(one, other, True) for one, other in zip(values, values[1:]))


def length(value):
    return len(value) if isinstance(value, (str, list, dict)) else None


def close(left, right, tolerance):
    distance = calculate(lambda left, right: abs(left - right), left, right)
    return distance is not None and less(distance, tolerance, True)


def contains(whole, part):
    if isinstance(whole, list):
        return any(equal(element, part) for element in whole)
    return isinstance(whole, str) and isinstance(part, str) and part in whole


def starts(whole, part):
    return isinstance(whole, str) and isinstance(part, str) and whole.startswith(part)


def date(value):
    if not isinstance(value, str):
        return ABSENT
    try:
        found = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return ABSENT
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def days(start, end):
    if not (isinstance(start, datetime) and isinstance(end, datetime)):
        return ABSENT
    return Fraction(int((end - start).total_seconds()), 86400)


def plain(text):
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def grounded(texts, document):
    return all(plain(text) in plain(document) for text in texts if isinstance(text, str))


# The checks: as they are written, and what they mean. `i` is the input, and `d` the data of the answer.

CHECKS = [
    ("sum($.data.items[*].amount) == $.data.total", lambda i, d: equal(total(each(d, "items", "*", "amount")), get(d, "total"))),
    (
        "all($.data.items[*], close(@.quantity * @.price, @.amount, 0.01))",
        lambda i, d: all(
            close(calculate(lambda a, b: a * b, get(one, "quantity"), get(one, "price")), get(one, "amount"), Decimal("0.01"))
            for one in each(d, "items", "*")
        ),
    ),
    ("unique($.data.items[*].name)", lambda i, d: unique(each(d, "items", "*", "name"))),
    ("sorted($.data.items[*].amount)", lambda i, d: is_sorted(each(d, "items", "*", "amount"))),
    (
        "count($.data.items[*], @.amount > 10) <= $.data.limit",
        lambda i, d: less(sum(less(10, get(one, "amount")) for one in each(d, "items", "*")), get(d, "limit"), True),
    ),
    ("$.data.best == max($.data.items[*].amount)", lambda i, d: equal(get(d, "best"), extreme(each(d, "items", "*", "amount"), True))),
    ("any($.data.items[*], starts(@.name, 'a'))", lambda i, d: any(starts(get(one, "name"), "a") for one in each(d, "items", "*"))),
    (
        "all($.data.items[*], contains($.input.allowed, @.kind))",
        lambda i, d: all(contains(get(i, "allowed"), get(one, "kind")) for one in each(d, "items", "*")),
    ),
    (
        "$.data.low <= $.data.total && $.data.total <= $.data.high",
        lambda i, d: less(get(d, "low"), get(d, "total"), True) and less(get(d, "total"), get(d, "high"), True),
    ),
    (
        "exists($.data.best) || length($.data.note) > 3",
        lambda i, d: get(d, "best") is not ABSENT or less(3, length(get(d, "note"))),
    ),
    (
        "!(exists($.data.low) && exists($.data.high)) || $.data.low < $.data.high",
        lambda i, d: ABSENT in (get(d, "low"), get(d, "high")) or less(get(d, "low"), get(d, "high")),
    ),
    ("date($.data.start) <= date($.data.end)", lambda i, d: less(date(get(d, "start")), date(get(d, "end")), True)),
    (
        "(date($.data.end) - date($.data.start)) / duration('P1D') == $.data.nights",
        lambda i, d: equal(days(date(get(d, "start")), date(get(d, "end"))), get(d, "nights")),
    ),
    ("$.data.total / $.data.limit > 1.5", lambda i, d: less(Decimal("1.5"), over(get(d, "total"), get(d, "limit")))),
    (
        "min($.data.items[*].amount) - $.data.low >= -2",
        lambda i, d: less(-2, calculate(lambda a, b: a - b, extreme(each(d, "items", "*", "amount"), False), get(d, "low")), True),
    ),
    ("length($.data.note) < length($.input.document)", lambda i, d: less(length(get(d, "note")), length(get(i, "document")))),
    ("contains($.input.document, $.data.note)", lambda i, d: contains(get(i, "document"), get(d, "note"))),
    ("count($.data.items) == $.data.count", lambda i, d: equal(len(spread(get(d, "items"))), get(d, "count"))),
    (
        "abs($.data.total - $.data.high) < 5 || $.data.flag",
        lambda i, d: less(calculate(lambda a, b: abs(a - b), get(d, "total"), get(d, "high")), 5) or get(d, "flag") is True,
    ),
    ("$.data.items[-1].name != $.data.items[0].name", lambda i, d: not equal(get(d, "items", -1, "name"), get(d, "items", 0, "name"))),
    ("grounded: $.data.quotes[*]", lambda i, d: grounded(each(d, "quotes", "*"), get(i, "document"))),
]

# Random answers.


def decimal(pick):
    return pick.choice([Decimal(pick.randint(-300, 3000)).scaleb(-pick.randint(0, 4)), pick.randint(-3, 20), 0, Decimal("2.50")])


def maybe(pick, value):
    """A value, or something that a check does not expect."""
    luck = pick.random()
    return value if luck < 0.86 else ABSENT if luck < 0.92 else None if luck < 0.96 else pick.choice(["7", True, [], {"a": 1}, ""])


NAMES = ["apple", "Bread", "", "ä", "salt", "a"]
DATES = ["2026-01-31", "2026-02-01", "2026-02-01T00:00Z", "2026-02-01T09:30:00+02:00", "2026-02-30", "soon", "2024-02-29"]
DOCUMENT = "The  Apple costs 2 €.\nIt was ﬁne, said ÄNNE, and left a tip."
NOTES = ["Apple", "It was", "tip.", "", "not there", "ÄNNE", "x" * 60]
QUOTES = ["the apple costs", "it was fine,", "änne", "IT WAS", "", "a lie", "2 €. it"]


def sample(pick):
    def item():
        quantity, price = decimal(pick), decimal(pick)
        amount = Decimal(quantity) * Decimal(price) if pick.random() < 0.7 else decimal(pick)
        found = {"name": pick.choice(NAMES), "kind": pick.choice(["x", "y", 3]), "quantity": quantity, "price": price, "amount": amount}
        return {key: maybe(pick, value) if pick.random() < 0.2 else value for key, value in found.items()}

    items = [item() for _ in range(pick.randint(0, 4))]
    if pick.random() < 0.3:
        items.sort(key=lambda one: number(one["amount"]) or Fraction(0))
    amounts = [number(one["amount"]) for one in items]
    known = [amount for amount in amounts if amount is not None]
    exact = lambda value: Decimal(value.numerator) / Decimal(value.denominator)
    data = {
        "items": items,
        "total": exact(sum(known, Fraction(0))) if pick.random() < 0.6 else decimal(pick),
        "best": exact(max(known)) if known and pick.random() < 0.6 else decimal(pick),
        "count": len(items) if pick.random() < 0.7 else 3,
        "limit": pick.randint(0, 3),
        "low": decimal(pick),
        "high": decimal(pick),
        "start": pick.choice(DATES),
        "end": pick.choice(DATES),
        "nights": pick.choice([0, 1, Decimal("0.3125"), 2]),
        "note": pick.choice(NOTES),
        "flag": pick.random() < 0.5,
        "quotes": [pick.choice(QUOTES) for _ in range(pick.randint(0, 3))],
    }
    data = {key: maybe(pick, value) for key, value in data.items()}
    return {"document": DOCUMENT, "allowed": ["x", "y", Decimal("3.0")]}, data


def clean(value):
    """The value without its absent members."""
    if isinstance(value, dict):
        return {key: clean(one) for key, one in value.items() if one is not ABSENT}
    return [clean(one) for one in value] if isinstance(value, list) else value


def text(value):
    """The value as JSON, with decimals as they are."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value)


def passes(check, input, data):
    try:
        return bool(check(input, data))
    except Fails:
        return False


def main():
    pick = random.Random(40)
    print(json.dumps([written for written, _ in CHECKS]))
    for _ in range(int(sys.argv[1])):
        input, data = map(clean, sample(pick))
        passed = [passes(check, input, data) for _, check in CHECKS]
        print(f'{{"input": {text(input)}, "data": {text(data)}, "passed": {json.dumps(passed)}}}')


main()
