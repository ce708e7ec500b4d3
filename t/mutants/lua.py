"""Mutants of the script: asked by the model program and by t/script.t, in a real Redis."""

import fcntl
import os
import random
import shutil
import socket
import subprocess
import time

import process

# A script that never ends keeps Redis busy, which takes a few seconds of this otherwise. Who waits
# for an answer that never comes takes none.
CPU_SECONDS = 40
SECONDS = 900

# A round of every mix.
MODEL_ENVIRONMENT = {'SLIDING_LIMIT_MODEL_REQUESTS': '1', 'SLIDING_LIMIT_MODEL_SEED': '1'}


def free_port():
    """One that nobody else takes, as t/lib/SlidingLimit/Servers.pm does it; and its lock."""
    directory = f'/tmp/sliding-limit-ports-{os.getuid()}'
    os.makedirs(directory, exist_ok=True)

    while True:
        port = random.randrange(10000, 32000)
        lock = open(f'{directory}/{port}', 'w', encoding='utf-8')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as trial:
                trial.bind(('0.0.0.0', port))
            return port, lock
        except OSError:
            lock.close()


class Redis:
    def __init__(self, directory):
        self.port, self.lock = free_port()
        self.server = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'KILL', 'prlimit', f'--cpu={CPU_SECONDS}', 'redis-server',
             '--port', str(self.port), '--bind', '127.0.0.1', '--save', '', '--dir', directory],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        for _ in range(600):
            try:
                socket.create_connection(('127.0.0.1', self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit('redis-server does not start')

    def stop(self):
        # a script that does not end would not let it shut down
        self.server.kill()
        self.server.wait()
        self.lock.close()


class Lua:
    kinds = ('model', 'suite')

    def __init__(self, build, jobs, files):
        self.model = os.path.abspath(os.path.join(build, '..', 'model', 'redis_script'))
        directory = os.path.join(build, 'lua')

        with open(files[0], encoding='utf-8') as file:
            text = file.read()
        for kind in self.kinds:
            if not self.passes(kind, files[0], text, directory):
                raise SystemExit(f'the {kind} fails with the script as it is')

    def passes(self, kind, file, text, directory):
        """With the script that lua/assemble makes if one of its files has this text."""
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree('lua', os.path.join(directory, 'lua'))
        os.symlink(os.path.abspath('t'), os.path.join(directory, 't'))
        with open(os.path.join(directory, file), 'w', encoding='utf-8') as out:
            out.write(text)

        if kind == 'suite':
            # should it be stopped, it still stops its own Redis
            return process.run(['perl', '-Msigtrap=die,normal-signals', 't/script.t'], cwd=directory,
                               cpu_seconds=CPU_SECONDS, seconds=SECONDS)

        redis = Redis(directory)
        try:
            return process.run([self.model, str(redis.port), 'lua/assemble'], cwd=directory,
                               env=MODEL_ENVIRONMENT, cpu_seconds=CPU_SECONDS, seconds=SECONDS)
        finally:
            redis.stop()

    def try_out(self, mutant, directory):
        """The kind of test that kills it, or 'survived'."""
        for kind in self.kinds:
            if not self.passes(kind, mutant.file, mutant.text, os.path.join(directory, 'lua')):
                return kind
        return 'survived'
