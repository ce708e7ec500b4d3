"""Mutants of the C++ code in folders pure/: compiled into the tests of their folder."""

import os
import resource
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from glob import glob

import process

# Without sanitizers, which would take most of the time: a mutant that only they would
# notice counts as one that survives. Without -g objects are alike if their code is.
FLAGS = ['-std=c++17', '-O1', '-w']
INCLUDES = ['-Isrc', '-It/unit', '-It/model']
COMPILER = os.environ.get('CXX', 'g++')

# Which model programs, beside the unit tests of the same folder, are about a folder.
MODELS = {'store': ['t/model/memory_table.cpp', 't/model/deny_cache.cpp']}

# A round of every mix, and a few more.
MODEL_ENVIRONMENT = {'SLIDING_LIMIT_MODEL_REQUESTS': '10000', 'SLIDING_LIMIT_MODEL_SEED': '1'}


def object_of(directory, source):
    return os.path.join(directory, source.replace('/', '+') + '.o')


def compiled(source, to, includes, given=None):
    """`given` is the path of a file that has the source's text instead."""
    done = subprocess.run([COMPILER, *FLAGS, *includes, '-c', '-o', to, given or source],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def read(path):
    with open(path, 'rb') as file:
        return file.read()


class Program:
    def __init__(self, source):
        self.source = source
        self.kind = 'model' if source.startswith('t/model/') else 'unit'
        self.libraries = ['-lhiredis'] if self.kind == 'model' else ['-lcmocka']
        self.cpu_seconds = 0    # as it takes with the code as it is

    def passes(self, program):
        environment = MODEL_ENVIRONMENT if self.kind == 'model' else {'CMOCKA_MESSAGE_OUTPUT': 'TAP'}
        return process.run([program], env=environment, cpu_seconds=2 + int(4 * self.cpu_seconds),
                           seconds=300)


class Cxx:
    kinds = ('unit', 'model')

    def __init__(self, build, jobs, files):
        self.build = os.path.join(build, 'cxx')
        folders = {file.split('/')[1] for file in files}
        os.makedirs(self.build, exist_ok=True)

        self.sources = sorted(glob('src/*/pure/*.cpp'))
        self.programs = {
            folder: [Program(source) for source in
                     sorted(glob(f't/unit/{folder}/*.cpp')) + MODELS.get(folder, [])]
            for folder in folders}
        everything = self.sources + [p.source for list_ in self.programs.values() for p in list_]

        with ThreadPoolExecutor(jobs) as pool:
            self.includes = dict(zip(everything, pool.map(self.files_of, everything)))
            built = pool.map(lambda source: compiled(source, object_of(self.build, source), INCLUDES),
                             everything)
            if not all(built):
                raise SystemExit('the code does not compile as it is')

        self.archive = os.path.join(self.build, 'pure.a')
        subprocess.run(['ar', 'rcs', self.archive] + [object_of(self.build, s) for s in self.sources],
                       check=True)

        for folder in sorted(folders):
            self.measure(folder)

    @staticmethod
    def files_of(source):
        listed = subprocess.run([COMPILER, *FLAGS, *INCLUDES, '-MM', source], check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        return {os.path.normpath(word) for word in listed.replace('\\\n', ' ').split()[1:]}

    def measure(self, folder):
        """The tests must pass with the code as it is. The quickest ones come first."""
        for program in self.programs[folder]:
            path = os.path.join(self.build, 'as-it-is')
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            program.cpu_seconds = 100
            if not self.link(path, program, self.build, []) or not program.passes(path):
                raise SystemExit(f'{program.source} fails with the code as it is')
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            program.cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        self.programs[folder].sort(key=lambda p: (p.kind != 'unit', p.cpu_seconds))

    def link(self, path, program, directory, objects):
        return subprocess.run(
            [COMPILER, '-o', path, object_of(directory, program.source), *objects, self.archive,
             *program.libraries], stderr=subprocess.DEVNULL).returncode == 0

    def try_out(self, mutant, directory):
        """What becomes of it: the kind of test that kills it, or 'survived', 'same code' or
        'no code'."""
        given = os.path.join(directory, mutant.file)
        includes = ['-I' + os.path.join(directory, 'src')] + INCLUDES
        os.makedirs(os.path.dirname(given), exist_ok=True)
        with open(given, 'w', encoding='utf-8') as file:
            file.write(mutant.text)

        try:
            return self.try_given(mutant.file, given, includes, directory)
        finally:
            os.remove(given)

    def try_given(self, file, given, includes, directory):
        objects = []

        def recompiled(source):
            """Whether it is other code now; None if it is none."""
            to = object_of(directory, source)
            if not compiled(source, to, includes, given if source == file else None):
                return None
            return read(to) != read(object_of(self.build, source))

        is_changed = False
        for source in self.sources:
            if file in self.includes[source]:
                is_other = recompiled(source)
                if is_other is None:
                    return 'no code'
                if is_other:
                    objects.append(object_of(directory, source))
                    is_changed = True

        path = os.path.join(directory, 'program')

        for program in self.programs[file.split('/')[1]]:
            is_other = file in self.includes[program.source] and recompiled(program.source)
            if is_other is None:
                return 'no code'
            if not is_other and not objects:
                continue
            is_changed = True
            if not self.link(path, program, directory if is_other else self.build, objects) \
                    or not program.passes(path):
                return program.kind

        return 'survived' if is_changed else 'same code'
