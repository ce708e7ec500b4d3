"""The charts for the README: CPU time per request, and how exact limiters are, as bars."""

import statistics
from xml.sax.saxutils import escape

import exactness

# None: a gap
SHOWN = [
    ("no_limit", "no limit"),
    ("limit_req", "limit_req"),
    ("memory", "sliding_limit, embedded store"),
    ("redis", "sliding_limit, Redis"),
    ("lua", "nginx-Lua, Redis"),
    None,
    ("limit_req_refusing", "limit_req, refusing"),
    ("memory_refusing", "sliding_limit, embedded, refusing"),
    ("redis_refusing", "sliding_limit, Redis, refusing"),
]

SHOWN_EXACTNESS = [
    ("fixed_window", "fixed window"),
    ("two_windows", "two-window approximation"),
    ("gcra", "GCRA, burst"),
    ("limit_req_burst", "limit_req, burst"),
    ("limit_req", "limit_req, no burst"),
    None,
    ("redis_log", "sliding_limit, Redis"),
    ("redis_buckets", "sliding_limit, Redis, buckets"),
    ("memory_log", "sliding_limit, embedded store"),
    ("memory_buckets", "sliding_limit, embedded, buckets"),
]

WIDTH, LEFT, RIGHT = 760, 230, 140
TOP, STEP, BAR = 62, 26, 16
# of three that belong together
THIN_BAR, THIN_STEP = 7, 36

# What bars are filled with on white and on black, whichever the reader's page has.
BLUE, ORANGE, GREY = ("#0969da", "#58a6ff"), ("#bc4c00", "#f0883e"), ("#8c959f", "#6e7681")


def style(colours):
    """colours: by class of the bars."""
    light, dark = ("".join(f"\n{indent}.{name} {{ fill: {colour[i]} }}" for name, colour in colours.items())
                   for i, indent in enumerate(("    ", "        ")))
    return f"""
    text {{ font: 13px system-ui, sans-serif; fill: #24292f }}
    .small {{ font-size: 11px; fill: #57606a }}{light}
    @media (prefers-color-scheme: dark) {{
        text {{ fill: #e6edf3 }}
        .small {{ fill: #9da7b3 }}{dark}
    }}"""


def bar(name, x, y, width, height):
    return f'<rect class="{name}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"/>'


def frame(label, title, colours, keys, parts, bottom):
    """keys: what the classes of bars mean, and where that stands."""
    legend = [part for name, text, x in keys
              for part in (bar(name, LEFT + x, 33, 12, 12),
                           f'<text class="small" x="{LEFT + x + 17}" y="43">{text}</text>')]
    body = "\n  ".join(legend + parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 8}" role="img"
     aria-label="{label}">
  <style>{style(colours)}
  </style>
  <text x="{LEFT}" y="20">{title}</text>
  {body}
</svg>
"""


def draw(results):
    def value(name, what):
        return statistics.median(r[what] for r in results["variants"][name])

    longest = max(value(row[0], "nginx_us") + value(row[0], "redis_us") for row in SHOWN if row)
    scale = (WIDTH - LEFT - RIGHT) / longest
    parts, y = [], TOP

    for row in SHOWN:
        if row is None:
            y += STEP // 2
            continue
        name, label = row
        nginx, redis = value(name, "nginx_us"), value(name, "redis_us")
        split, end = LEFT + nginx * scale, LEFT + (nginx + redis) * scale
        figures = f"{nginx:.1f}" + (f" + {redis:.1f}" if redis >= 0.05 else "")
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>',
            bar("nginx", LEFT, y, split - LEFT, BAR),
            bar("redis", split, y, end - split, BAR),
            f'<text class="small" x="{end + 6:.1f}" y="{y + 12}">{figures} µs, '
            f'{value(name, "requests_per_second") / 1000:.0f}k/s</text>']
        y += STEP

    return frame("CPU time per request of nginx and Redis, by rate limiter",
                 "CPU time per request, and requests per second with one worker",
                 {"nginx": BLUE, "redis": ORANGE}, [("nginx", "nginx", 0), ("redis", "Redis", 65)], parts, y)


def draw_exactness(results):
    limiters = results["exactness"]["limiters"]
    kinds = list(next(iter(limiters.values())))
    scale = (WIDTH - LEFT - RIGHT) / 2
    parts, y = [], TOP

    for row in SHOWN_EXACTNESS:
        if row is None:
            y += STEP // 2
            continue
        name, label = row
        most = {kind: exactness.worst(limiters[name][kind])["most_certain"] for kind in kinds}
        needless = exactness.share_refused_with_room(
            {f"{kind} {load}": limiters[name][kind][load] for kind in kinds for load in limiters[name][kind]})
        end = LEFT + max(*most.values(), 1) * scale
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(label)}</text>',
            *(bar(kind, LEFT, y + n * (THIN_BAR + 1), most[kind] * scale, THIN_BAR)
              for n, kind in enumerate(kinds)),
            f'<text class="small" x="{end + 6:.1f}" y="{y + 10}">up to {max(most.values()):.2f} × the limit</text>',
            f'<text class="small" x="{end + 6:.1f}" y="{y + 23}">{needless:.0%} refused needlessly</text>']
        y += THIN_STEP

    parts.append(bar("limit", LEFT + scale - 0.5, TOP - 6, 1, y - TOP))
    return frame("The most requests let through in any window, as a multiple of the limit, by rate limiter",
                 "The most requests let through in any window; the line is the limit",
                 {"steady": GREY, "bursty": BLUE, "adversarial": ORANGE, "limit": ("#24292f", "#e6edf3")},
                 [("steady", "steady load", 0), ("bursty", "bursts", 95), ("adversarial", "adversarial", 165)],
                 parts, y)
