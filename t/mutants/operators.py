"""Small changes to a source text, one at a time, each of which some test should notice.

Operators look at single tokens and lines, and lean on the way this project is formatted:
binary operators have spaces around them, and a statement begins on a line of its own.
Comments and strings stay as they are.
"""

import re
from typing import NamedTuple


class Mutant(NamedTuple):
    """One change of one file. Whatever stands on other lines, it is still the same one."""

    file: str
    line: int       # where it is now; no part of its name
    before: str     # the line, or the first one of a statement
    after: str
    occurrence: int  # of this change of such a line, in this file
    text: str       # the whole file with the change

    @property
    def name(self):
        again = f' ({self.occurrence})' if self.occurrence > 1 else ''
        return f'{self.file}{again}\n- {self.before}\n+ {self.after}'


REMOVED = '(removed)'

# What is replaced, and by what. Alternatives that are weaker than these, such as a
# relation that is always true, are not tried: who notices these notices them, too.
OPERATORS = [
    (r'(?<= )<(?= )', ('<=', '>=')),
    (r'(?<= )<=(?= )', ('<', '>')),
    (r'(?<= )>(?= )', ('>=', '<=')),
    (r'(?<= )>=(?= )', ('>', '<')),
    (r'(?<= )\+(?= )', ('-',)),
    (r'(?<= )-(?= )', ('+',)),
    (r'(?<= )\*(?= )', ('/',)),
    (r'(?<= )/(?= )', ('*',)),
    (r'(?<= )%(?= )', ('/',)),
    (r'(?<=[(\[])-(?=[\w(])|(?<=[,=?:] )-(?=[\w(])|(?<=return )-(?=[\w(])', ('',)),
    (r'\btrue\b', ('false',)),
    (r'\bfalse\b', ('true',)),
]

CXX_OPERATORS = OPERATORS + [
    (r'(?<= )==(?= )', ('!=',)),
    (r'(?<= )!=(?= )', ('==',)),
    (r'(?<= )&&(?= )', ('||',)),
    (r'(?<= )\|\|(?= )', ('&&',)),
    (r'(?<= )<<(?= )', ('>>',)),
    (r'(?<= )>>(?= )', ('<<',)),
    (r'(?<= )&(?= )', ('|',)),
    (r'(?<= )\|(?= )', ('&',)),
    (r'(?<= )\+=(?= )', ('-=',)),
    (r'(?<= )-=(?= )', ('+=',)),
    (r'\+\+', ('--',)),
    (r'--', ('++',)),
    (r'!(?=[\w(:])', ('',)),
    (r'\bstd::min\b', ('std::max',)),
    (r'\bstd::max\b', ('std::min',)),
]

LUA_OPERATORS = OPERATORS + [
    (r'(?<= )==(?= )', ('~=',)),
    (r'(?<= )~=(?= )', ('==',)),
    (r'\band\b', ('or',)),
    (r'\bor\b', ('and',)),
    (r'\bnot ', ('',)),
    (r'\bmath\.min\b', ('math.max',)),
    (r'\bmath\.max\b', ('math.min',)),
    (r'\bmath\.floor\b', ('math.ceil',)),
    (r'\bmath\.ceil\b', ('math.floor',)),
]

NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")

# Where one of these is changed anyway, to turn the whole condition around adds nothing.
COMPARES = re.compile(r'[=!~<>]=| [<>] |&&|\|\||!|\b(?:and|or|not)\b')


def hide(text, pattern):
    """Puts something of the same length in the place of what is no code."""
    return re.sub(pattern, lambda m: re.sub(r'[^\n]', '$', m.group()), text)


def hide_cxx(text):
    text = hide(text, r'//[^\n]*|(?s:/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'')
    text = hide(text, r'(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*')
    return hide(text, r'(?s)\bstatic_assert\(.*?\);')


def hide_lua(text):
    # what is only room is written over before it is read
    text = hide(text, r'(?<=\{ )0(?:, 0){3,}(?= \})')
    return hide(text, r'--[^\n]*|\'(?:\\.|[^\'\\\n])*\'|"(?:\\.|[^"\\\n])*"')


def replacements(code, operators):
    for pattern, alternatives in operators:
        for match in re.finditer(pattern, code):
            for alternative in alternatives:
                yield [(match.start(), match.end(), alternative)]

    for match in NUMBER.finditer(code):
        number = int(match.group())
        yield [(match.start(), match.end(), '0' if number == 1 else str(number + 1))]


def end_of_group(code, start):
    """Where the parenthesis that opens at `start` is closed."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] == '(') - (code[i] == ')')
        if depth == 0:
            return i
    raise ValueError('a parenthesis is not closed')


def turned_around_in_cxx(code):
    for match in re.finditer(r'\b(?:if|while) \(', code):
        start, end = match.end(), end_of_group(code, match.end() - 1)
        if not COMPARES.search(code[start:end]):
            yield [(start, start, '!('), (end, end, ')')]

    for match in re.finditer(r' \? ', code):
        condition = re.split(r' = |[(,;]|\breturn\b', code[:match.start()])[-1]
        if not COMPARES.search(condition):
            yield [(match.start(), match.start(), ' && false')]
            yield [(match.start(), match.start(), ' || true')]


def turned_around_in_lua(code):
    for match in re.finditer(r'\b(?:if|while) (.*) (?:then|do)\b', code):
        if not COMPARES.search(match.group(1)):
            yield [(match.start(1), match.start(1), 'not ('), (match.end(1), match.end(1), ')')]


CXX_TARGET = r'[(*]*[A-Za-z_][\w.:\[\]()*]*(?:->[\w.:\[\]()*]+)*'

CXX_STATEMENT = re.compile(
    rf'(?s)(?:{CXX_TARGET} (?:[-+*/|&^]|<<|>>)?= .*'
    rf'|{CXX_TARGET}(?:\+\+|--)'
    r'|(?!(?:if|for|while|switch|return|static_assert)\b)[A-Za-z_][\w.:]*(?:->[\w.:]+)*(?:\(.*\)|<.*>\(.*\))'
    r'|break|continue|return);')

LUA_STATEMENT = re.compile(
    r'(?s)(?!(?:local|if|elseif|for|while|return|function)\b)'
    r'(?:[A-Za-z_][\w.\[\], *+-]* = .*[^,]|[A-Za-z_][\w.]*\(.*\)|break)')


def cxx_statements(code):
    begins = True
    lines = list(re.finditer(r'(?m)^.*\n', code))

    for i, line in enumerate(lines):
        if line.group().strip(' $\n') == '':
            continue
        if begins:
            for last in lines[i:i + 8]:
                if last.group().rstrip().endswith((';', '{', '}')):
                    break
            yield code[line.start():last.end()], line.start(), last.end()
        begins = line.group().rstrip().endswith((';', '{', '}', ':'))


def lua_statements(code):
    lines = list(re.finditer(r'(?m)^.*\n', code))

    for i, line in enumerate(lines):
        end = i + 1
        while end < len(lines) and (
                any(code[line.start():lines[end - 1].end()].count(a)
                    > code[line.start():lines[end - 1].end()].count(b) for a, b in ('()', '[]', '{}'))
                or re.match(r'\s+(?:and|or)\b', lines[end].group())):
            end += 1
        yield code[line.start():lines[end - 1].end()], line.start(), lines[end - 1].end()


def removals(statements, pattern):
    for statement, start, end in statements:
        if pattern.fullmatch(re.sub(r'\$+$', '', statement.strip()).strip()):
            yield [(start, end, '\n' * statement.count('\n'))]


def mutants_of(file, text):
    """All of them, in the order of the lines."""
    if file.endswith('.lua'):
        code = hide_lua(text)
        changes = [*replacements(code, LUA_OPERATORS), *turned_around_in_lua(code),
                   *removals(lua_statements(code), LUA_STATEMENT)]
    else:
        code = hide_cxx(text)
        changes = [*replacements(code, CXX_OPERATORS), *turned_around_in_cxx(code),
                   *removals(cxx_statements(code), CXX_STATEMENT)]

    seen = {}
    found = []

    for edits in sorted(changes):
        changed = text
        for start, end, new in reversed(edits):
            changed = changed[:start] + new + changed[end:]

        line = text.count('\n', 0, edits[0][0])
        before = text.split('\n')[line].strip()
        after = changed.split('\n')[line].strip() or REMOVED
        seen[before, after] = seen.get((before, after), 0) + 1
        found.append(Mutant(file, line + 1, before, after, seen[before, after], changed))

    return found
