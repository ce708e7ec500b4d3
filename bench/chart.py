"""The chart for the README: CPU time per request, nginx and Redis, as bars."""

import statistics
from xml.sax.saxutils import escape

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

WIDTH, LEFT, RIGHT = 760, 230, 140
TOP, STEP, BAR = 62, 26, 16

# readable on white and on black, whichever the reader's page has
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #24292f }
    .small { font-size: 11px; fill: #57606a }
    .nginx { fill: #0969da }
    .redis { fill: #bc4c00 }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 }
        .small { fill: #9da7b3 }
        .nginx { fill: #58a6ff }
        .redis { fill: #f0883e }
    }"""


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
            f'<rect class="nginx" x="{LEFT}" y="{y}" width="{split - LEFT:.1f}" height="{BAR}"/>',
            f'<rect class="redis" x="{split:.1f}" y="{y}" width="{end - split:.1f}" height="{BAR}"/>',
            f'<text class="small" x="{end + 6:.1f}" y="{y + 12}">{figures} µs, '
            f'{value(name, "requests_per_second") / 1000:.0f}k/s</text>']
        y += STEP

    body = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" role="img"
     aria-label="CPU time per request of nginx and Redis, by rate limiter">
  <style>{STYLE}
  </style>
  <text x="{LEFT}" y="20">CPU time per request, and requests per second with one worker</text>
  <rect class="nginx" x="{LEFT}" y="33" width="12" height="12"/>
  <text class="small" x="{LEFT + 17}" y="43">nginx</text>
  <rect class="redis" x="{LEFT + 65}" y="33" width="12" height="12"/>
  <text class="small" x="{LEFT + 82}" y="43">Redis</text>
  {body}
</svg>
"""
