"""report LINES UNREACHED: which lines of the module were reached, by what gcov has written into
the directory LINES; prints a table, and writes the lines that were not into UNREACHED.

Fails if there are some that unreached.txt beside this file does not explain. That file names them
by function and text, because line numbers change with every edit.
"""

import collections
import gzip
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPLAINED = pathlib.Path(__file__).with_name("unreached.txt")
UNEXPLAINED = "not explained"

Line = collections.namedtuple("Line", "path number function text")


def short_name(function):
    """Without namespaces, which are the project's one and anonymous ones, and without arguments."""
    name, templates = re.sub(r"\(anonymous namespace\)::|sl::", "", function), 1
    while templates:
        name, templates = re.subn(r"<[^<>]*>", "", name)
    return name.partition("(")[0].split(" ")[-1]


def read_counts(directory):
    """By path and line number: how often it was reached, in all builds together, and its function.

    The same file has another path in each of them."""
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("sl_*")}
    sources |= {str(path.relative_to(ROOT)) for path in (ROOT / "src").glob("*.cpp")}
    counts, functions = collections.Counter(), {}

    for report in directory.rglob("*.gcov.json.gz"):
        for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
            path = "src/" + file["file"].rpartition("src/")[2]
            if path not in sources:
                continue
            names = {f["name"]: f["demangled_name"] for f in file["functions"]}
            for line in file["lines"]:
                place = path, line["line_number"]
                counts[place] += line["count"]
                function = line.get("function_name", "")
                functions[place] = short_name(names.get(function, function))

    return counts, functions


def unreached_lines(counts, functions):
    texts = {}

    def text_of(path, number):
        if path not in texts:
            texts[path] = (ROOT / path).read_text().splitlines()
        return texts[path][number - 1].strip()

    return [Line(path, number, functions[path, number], text_of(path, number))
            for (path, number), count in sorted(counts.items()) if count == 0]


def read_explained():
    """By path, function and text: reasons, one for each such line."""
    reasons, reason = collections.defaultdict(list), None

    for line in EXPLAINED.read_text().splitlines():
        if line.startswith("    "):
            reasons[tuple(line.strip().split(": ", 2))].append(reason)
        elif line and not line.startswith("#"):
            reason = line.rstrip(":")

    return reasons


def by_reason(unreached, reasons):
    """The lines that are not reached by reason; takes the reasons away that are used."""
    grouped = collections.defaultdict(list)
    for line in unreached:
        known = reasons[line.path, line.function, line.text]
        grouped[known.pop() if known else UNEXPLAINED].append(line)
    return grouped


def print_table(counts):
    """Folders, and of their files those that are not reached as a whole."""
    def row(name, places):
        reached = sum(counts[place] > 0 for place in places)
        print(f"  {name:<44} {len(places):>6} {reached:>8} {reached / len(places):>8.1%}")

    folders = collections.defaultdict(lambda: collections.defaultdict(list))
    for place in counts:
        folder, _, name = place[0].rpartition("/")
        folders[folder][name].append(place)

    print(f"  {'':<44} {'lines':>6} {'reached':>8}")
    for folder, files in sorted(folders.items()):
        row(folder, [place for places in files.values() for place in places])
        for name, places in sorted(files.items()):
            if not all(counts[place] for place in places):
                row("    " + name, places)
    row("all", list(counts))


def main(directory, output):
    counts, functions = read_counts(directory)
    if not counts:
        raise SystemExit(f"coverage: nothing in {directory}")

    reasons = read_explained()
    grouped = by_reason(unreached_lines(counts, functions), reasons)

    with output.open("w") as file:
        for reason, lines in sorted(grouped.items(), key=lambda item: item[0] != UNEXPLAINED):
            print(f"{reason}:", file=file)
            for line in lines:
                print(f"    {line.path}:{line.number}: {line.function}: {line.text}", file=file)

    print_table(counts)
    print()
    for reason, lines in grouped.items():
        print(f"  {len(lines):>4} lines: {reason}")
    for place, left in reasons.items():
        if left:
            print(f"coverage: {EXPLAINED.name} explains what was reached this time: {': '.join(place)}")
    if UNEXPLAINED in grouped:
        raise SystemExit(f"coverage: {len(grouped[UNEXPLAINED])} lines are not reached, and "
                         f"{EXPLAINED.relative_to(ROOT)} does not say why; see {output}")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
