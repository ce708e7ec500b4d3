"""Runs a test program, for as long as it does not fail."""

import os
import re
import resource
import signal
import subprocess
import threading

FAILED = re.compile(rb'^\s*(?:not ok|Bail out!)')


def run(command, cwd=None, env=None, seconds=None, cpu_seconds=None):
    """True if it ends well. A test that hangs has failed, too: if it or something that it has
    started works for so long, whatever else the machine does, or after so many seconds."""

    def limit():
        if cpu_seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # to be stopped as a whole; in a session of its own it would no longer be nice to others
        os.setpgid(0, 0)

    process = subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit)

    def stop(number=signal.SIGTERM):
        if process.poll() is None:
            os.killpg(process.pid, number)

    timer = threading.Timer(seconds, stop) if seconds else None
    if timer:
        timer.start()

    try:
        for line in process.stdout:
            if FAILED.match(line):
                stop()
                return False
        return process.wait() == 0
    finally:
        if timer:
            timer.cancel()
        process.stdout.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            stop(signal.SIGKILL)
            process.wait()
