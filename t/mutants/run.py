"""run.py BUILD JOBS [--survivors] [FILE...]: do the tests notice if the code is changed?

One small change after the other is made to the script's files, to the embedded store's table and to
what decides about requests (see operators.py), and the tests that are about that code are run:
the cheapest first, until one fails. Changes that no test notices must be told about in
explained.txt, each group of them with the reason why that is as it should be.

With --survivors only those are tried again that survived the last time, for whoever writes a
test that should notice them; what is known of the others is in BUILD/mutants/results.
"""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from glob import glob

from cxx import Cxx
from lua import Lua
from operators import mutants_of

EXPLAINED = os.path.join(os.path.dirname(__file__), 'explained.txt')

FILES = sorted(
    file for pattern in (
        'lua/*.lua', 'src/store/pure/sl_memory_*', 'src/store/pure/sl_stamp.h', 'src/store/pure/sl_limit_*',
        'src/store/pure/sl_refusal_marks.*', 'src/request/pure/*', 'src/redis/pure/sl_breaker.*',
        'src/redis/pure/sl_shared_breakers.*', 'src/redis/pure/sl_worker_breaker.h',
        'src/redis/pure/sl_redis_error.*', 'src/redis/pure/sl_key.*')
    for file in glob(pattern))

COLUMNS = ('unit', 'replay', 'model', 'suite', 'same code', 'survived')


def read_explained():
    """The names of all that are told about there: a diff each, under the reason."""
    with open(EXPLAINED, encoding='utf-8') as file:
        lines = file.read().splitlines()
    return {'\n'.join(lines[i - 1:i + 2]) for i, line in enumerate(lines) if line.startswith('- ')}


class Results:
    """What became of each mutant; kept in a file, should somebody not want to wait for the end."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.of = {}
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                self.of = dict(json.loads(line) for line in file)

    def add(self, name, result):
        with self.lock:
            self.of[name] = result
            with open(self.path, 'a', encoding='utf-8') as file:
                file.write(json.dumps([name, result]) + '\n')


def is_lua(file):
    return file.endswith('.lua')


def try_all(mutants, build, jobs, results):
    directories = threading.local()
    languages = {language: language(build, jobs, files) for language, files in (
        (Lua, [file for file, list_ in mutants.items() if list_ and is_lua(file)]),
        (Cxx, [file for file, list_ in mutants.items() if list_ and not is_lua(file)])) if files}

    def try_out(mutant):
        if not hasattr(directories, 'own'):
            directories.own = os.path.join(build, f'worker-{threading.get_ident()}')
            os.makedirs(directories.own, exist_ok=True)
        language = languages[Lua if is_lua(mutant.file) else Cxx]
        result = language.try_out(mutant, directories.own)
        results.add(mutant.name, result)
        if result == 'survived':
            print(f'{mutant.file}:{mutant.line}\n- {mutant.before}\n+ {mutant.after}', flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(try_out, [mutant for list_ in mutants.values() for mutant in list_]):
            pass


def print_table(mutants, results):
    width = max(len(file) for file in mutants)
    print(f'\n{"":{width}} {"mutants":>9}' + ''.join(f'{column:>11}' for column in COLUMNS))
    total = [0] * (1 + len(COLUMNS))

    for file, list_ in mutants.items():
        found = [results[mutant.name] for mutant in list_ if results[mutant.name] != 'no code']
        numbers = [len(found)] + [found.count(column) for column in COLUMNS]
        total = [a + b for a, b in zip(total, numbers)]
        print(f'{file:{width}} {numbers[0]:>9}' + ''.join(f'{n:>11}' for n in numbers[1:]))

    print(f'{"all":{width}} {total[0]:>9}' + ''.join(f'{n:>11}' for n in total[1:]))


def main():
    build = os.path.join(sys.argv[1], 'mutants')
    only_survivors = '--survivors' in sys.argv
    files = [word for word in sys.argv[3:] if word != '--survivors'] or FILES

    os.makedirs(build, exist_ok=True)
    mutants = {}
    for file in files:
        with open(file, encoding='utf-8') as source:
            mutants[file] = mutants_of(file, source.read())

    results = Results(os.path.join(build, 'results'))
    again = {file: [mutant for mutant in list_
                    if not only_survivors or results.of.get(mutant.name, 'survived') == 'survived']
             for file, list_ in mutants.items()}
    try_all(again, build, int(sys.argv[2]), results)
    results = {mutant.name: results.of[mutant.name] for list_ in mutants.values() for mutant in list_}
    print_table(mutants, results)

    explained = read_explained()
    survivors = {name for name, result in results.items() if result == 'survived'}
    open_ones = sorted(survivors - explained)
    needless = sorted(name for name in explained & set(results) if name not in survivors)

    print(f'\n{len(survivors & explained)} of those that survive are explained, {len(open_ones)} are not')
    print(''.join(f'\n{name}\n' for name in open_ones))
    for name in needless:
        print(f'explained, but {results[name]}:\n{name}\n')
    return 1 if open_ones else 0


sys.exit(main())
