"""Mutants of the C++ code in folders pure/: compiled into the tests of their folder."""

import os
import resource
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from glob import glob

import process

COMPILER = os.environ.get('CXX', 'g++')
INCLUDES = ['-Isrc', '-It/unit', '-It/model', '-It/fuzz']

# Without -g objects are alike if their code is.
PLAIN = ['-std=c++17', '-O1', '-w']
SANITIZED = PLAIN + ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']

# Which programs, beside the unit tests of the same folder, are about files whose names begin so:
# fuzz targets, which are given their seeds and what was found, and models.
REPLAY = 't/fuzz/replay/replay.cpp'
OTHERS = {
    'src/store/': ['t/fuzz/table_bytes.cpp', 't/fuzz/table_use.cpp', 't/model/memory_table.cpp',
                   't/model/deny_cache.cpp'],
    'src/store/pure/sl_memory_recovery': ['t/model/memory_kills.cpp'],
    'src/store/pure/sl_limit_state': ['t/unit/request/verdict.cpp'],
}

# A round of every mix, and a few more.
MODEL_ENVIRONMENT = {'SLIDING_LIMIT_MODEL_REQUESTS': '10000', 'SLIDING_LIMIT_MODEL_SEED': '1'}


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def programs_about(files):
    return sorted({program for file in files for program in (
        *glob(f't/unit/{file.split("/")[1]}/*.cpp'),
        *(other for start, others in OTHERS.items() if file.startswith(start) for other in others))})


class Program:
    def __init__(self, source):
        self.source = source
        self.kind = {'model': 'model', 'fuzz': 'replay'}.get(source.split('/')[1], 'unit')
        self.libraries = {'model': ['-lhiredis'], 'unit': ['-lcmocka'], 'replay': []}[self.kind]
        self.others = [REPLAY] if self.kind == 'replay' else []
        self.cpu_seconds = 100      # that it takes with the code as it is

    def passes(self, path):
        environment = MODEL_ENVIRONMENT if self.kind == 'model' else {'CMOCKA_MESSAGE_OUTPUT': 'TAP'}
        name = os.path.basename(self.source).removesuffix('.cpp')
        cases = sorted(glob(f't/fuzz/*/{name}/*')) if self.kind == 'replay' else []
        return process.run([path, *cases], env=environment, cpu_seconds=2 + int(4 * self.cpu_seconds))


class Build:
    """The code as it is and tests for it, all of it compiled with the same flags."""

    def __init__(self, directory, jobs, flags, programs):
        self.directory = directory
        self.flags = flags
        self.programs = list(programs)
        self.sources = sorted(glob('src/*/pure/*.cpp'))
        self.kills = Counter()
        os.makedirs(directory, exist_ok=True)

        everything = self.sources + sorted({s for p in self.programs for s in (p.source, *p.others)})
        with ThreadPoolExecutor(jobs) as pool:
            self.files = dict(zip(everything, pool.map(self.files_of, everything)))
            if not all(pool.map(lambda source: self.compile(source, directory), everything)):
                raise SystemExit('the code does not compile as it is')

        self.archive = os.path.join(directory, 'pure.a')
        subprocess.run(['ar', 'rcs', self.archive] + [self.object_of(s) for s in self.sources],
                       check=True)
        for program in self.programs:
            self.measure(program)

    def object_of(self, source, directory=None):
        return os.path.join(directory or self.directory, source.replace('/', '+') + '.o')

    def files_of(self, source):
        listed = subprocess.run([COMPILER, *self.flags, *INCLUDES, '-MM', source], check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        return {os.path.normpath(word) for word in listed.replace('\\\n', ' ').split()[1:]}

    def compile(self, source, directory, includes=(), given=None):
        """`given` is the path of what to compile in the source's place."""
        return subprocess.run(
            [COMPILER, *self.flags, *includes, *INCLUDES, '-c', '-o',
             self.object_of(source, directory), given or source],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def link(self, path, program, objects):
        return subprocess.run(
            [COMPILER, *self.flags, '-o', path, *objects, *map(self.object_of, program.others),
             self.archive, *program.libraries],
            stderr=subprocess.DEVNULL).returncode == 0

    def measure(self, program):
        path = os.path.join(self.directory, 'as-it-is')
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not self.link(path, program, [self.object_of(program.source)]) or not program.passes(path):
            raise SystemExit(f'{program.source} fails with the code as it is')
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        program.cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def in_order(self, file):
        """What has noticed most changes of this file comes first, and then what is quick."""
        about = programs_about([file])
        return sorted((p for p in self.programs if p.source in about), key=lambda p: (
            p.kind != 'unit', -self.kills[file, p.source], p.cpu_seconds))

    def try_out(self, mutant, directory):
        """What becomes of it: the kind of test that kills it, 'survived', 'same code', or 'no
        code' if it does not compile."""
        file = mutant.file
        given = os.path.join(directory, file)
        includes = ['-I' + os.path.join(directory, 'src')]
        changed = []
        is_changed = False

        os.makedirs(os.path.dirname(given), exist_ok=True)
        with open(given, 'w', encoding='utf-8') as out:
            out.write(mutant.text)

        def is_other_code(source):
            if not self.compile(source, directory, includes, given if source == file else None):
                return None
            return read(self.object_of(source, directory)) != read(self.object_of(source))

        try:
            for source in self.sources:
                if file in self.files[source]:
                    is_other = is_other_code(source)
                    if is_other is None:
                        return 'no code'
                    if is_other:
                        changed.append(self.object_of(source, directory))

            for program in self.in_order(file):
                is_other = file in self.files[program.source] and is_other_code(program.source)
                if is_other is None:
                    return 'no code'
                if not is_other and not changed:
                    continue
                is_changed = True
                path = os.path.join(directory, 'program')
                objects = [self.object_of(program.source, directory if is_other else None), *changed]
                if not self.link(path, program, objects) or not program.passes(path):
                    self.kills[file, program.source] += 1
                    return program.kind
        finally:
            os.remove(given)

        return 'survived' if is_changed else 'same code'


class Cxx:
    def __init__(self, build, jobs, files):
        self.directory = os.path.join(build, 'sanitized')
        self.jobs = jobs
        self.sources = programs_about(files)
        self.plain = Build(os.path.join(build, 'plain'), jobs, PLAIN, map(Program, self.sources))
        self.sanitized = None
        self.lock = threading.Lock()

    def try_out(self, mutant, directory):
        result = self.plain.try_out(mutant, directory)
        if result != 'survived':
            return result

        # sanitizers take much more time, models most of all, and notice little that is not
        # noticed without
        with self.lock:
            self.sanitized = self.sanitized or Build(
                self.directory, self.jobs, SANITIZED,
                [p for p in map(Program, self.sources) if p.kind != 'model'])
        result = self.sanitized.try_out(mutant, directory)
        return result if result in ('unit', 'replay') else 'survived'
