"""How figures of the two programs are printed side by side."""
import statistics

UNITS = {"bytes": ("MiB", 1 / 2**20, 1), "seconds": ("s", 1, 2), "milliseconds": ("ms", 1000, 1)}


def shown(unit, values):
    """Median and range; seconds below one as milliseconds."""
    middle = statistics.median(values)
    if unit == "seconds" and middle < 1:
        unit = "milliseconds"
    name, scale, digits = UNITS[unit]
    low, mid, high = (f"{value * scale:.{digits}f}" for value in (min(values), middle, max(values)))
    return f"{mid} {name} ({low}-{high})"


def heading():
    print(f"{'':32} {'reference':26} {'ours':26} {'ratio':8} required")


def row(label, unit, theirs, ours, least):
    """Prints one figure of both; returns what to say when the ratio is below `least` (None: nothing is required)."""
    ratio = statistics.median(theirs) / max(statistics.median(ours), 1e-9)
    verdict = f"1/{least}  {'ok' if ratio >= least else 'MISSED'}" if least else ""
    print(f"{label:32} {shown(unit, theirs):26} {shown(unit, ours):26} 1/{ratio:<6.1f} {verdict}")
    return [f"{label}: 1/{ratio:.1f}, required 1/{least}"] if least and ratio < least else []
