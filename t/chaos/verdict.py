"""What a judge says, for people and for programs."""

import json


def is_good(verdicts):
    return bool(verdicts) and not any(verdict.violations for verdict in verdicts)


def as_json(verdicts):
    return json.dumps([_for_programs(verdict) for verdict in verdicts], indent=2)


def _for_programs(verdict):
    return {
        "topology": verdict.topology, "seed": verdict.seed,
        "faults": dict(verdict.faults), "outcomes": dict(verdict.outcomes), "changes": dict(verdict.changes),
        "checked": dict(verdict.checked), "exceptions": dict(verdict.exceptions),
        "recoveries_us": verdict.recoveries, "remarks": verdict.remarks,
        "violations": dict(verdict.violations), "examples": dict(verdict.examples),
    }


def table(verdicts):
    lines = []
    for verdict in verdicts:
        lines += ["", f"== {verdict.topology}, seed {verdict.seed}"]
        lines += _rows("faults", verdict.faults)
        lines += _rows("requests", verdict.outcomes)
        lines += _rows("changes", verdict.changes)
        lines += _rows("judged", verdict.checked)
        if verdict.recoveries:
            slow = sum(recovery > 1_000_000 for recovery in verdict.recoveries)
            lines.append(f"  counted again after   at most {max(verdict.recoveries) / 1e6:.3f} s "
                         f"({slow} of {len(verdict.recoveries)} times after more than 1 s)")
        lines += _rows("exceptions", verdict.exceptions)
        lines += [f"  remark: {remark}" for remark in verdict.remarks]
        lines += _rows("VIOLATIONS", verdict.violations) if verdict.violations else ["  violations            0"]
        for what, examples in verdict.examples.items():
            lines += [f"    {what}: {example}" for example in examples]
    total = sum(sum(verdict.violations.values()) for verdict in verdicts)
    lines += ["", f"{'GOOD' if is_good(verdicts) else 'BAD'}: {total} violations"]
    return "\n".join(lines)


def _rows(title, counts):
    title = f"{title} ({sum(counts.values())})"
    rows = []
    for name, count in sorted(counts.items()):
        rows.append(f"  {title:<21} {count:>8}  {name}")
        title = ""
    return rows
