#!/usr/bin/env python3
"""Runs one command and prints what it cost, as one line of JSON.

usage: measure.py [--memory] [--timeout SECONDS] -- COMMAND...   (in the current folder, with the current environment)

wall    seconds from the start until the command's own process has ended
cpu     user + system seconds of the whole process tree: RUSAGE_CHILDREN of this process, which reaps all of it (it is
        the tree's subreaper, so orphans come back here; what outlives the command is killed, counted in `left` and reaped)
rss     peak, in bytes, of the memory of the tree (with --memory): samples every 5 ms of the sum of resident memory of all processes;
        shared pages are counted in each process, so it is an upper limit
pss     the same with shared pages divided among those that share them
maxrss  the largest single process as the kernel kept it (VmHWM at the last sample, or ru_maxrss where it says more)

Sampling takes CPU time on the same cores, so wall and cpu are to be read from a run without --memory.
"""
import argparse
import ctypes
import json
import os
import resource
import signal
import sys
import time

INTERVAL = 0.005
PR_SET_CHILD_SUBREAPER = 36
PAGE = os.sysconf("SC_PAGE_SIZE")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # the process ended in between


def children(pid):
    """Direct children of all threads of a process."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += [int(child) for child in read(f"/proc/{pid}/task/{thread}/children").split()]
    return found


def image(pid):
    """What tells a process that still shares its parent's memory (between fork or vfork and exec) from one of its own."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        program = None
    statm = read(f"/proc/{pid}/statm").split()
    return program, int(statm[0]) if statm else 0, int(statm[1]) * PAGE if statm else 0


def field(text, name):
    """A `Name:  N kB` line of /proc, in bytes."""
    start = text.find(name)
    return int(text[start + len(name):].split(None, 1)[0]) * 1024 if start >= 0 else 0


class Sampler:
    def __init__(self):
        self.rss = self.pss = self.maxrss = self.processes = self.samples = 0

    def sample(self, root):
        """Everything below `root`."""
        self.walk([(child, None) for child in children(root)])

    def add(self, root):
        """`root` and everything below it."""
        self.walk([(root, None)])

    def walk(self, stack):
        rss = pss = processes = 0
        while stack:
            pid, parent = stack.pop()
            program, size, resident = image(pid)
            stack += [(child, (program, size)) for child in children(pid)]
            if resident == 0 or parent == (program, size):
                continue
            processes += 1
            rss += resident
            pss += field(read(f"/proc/{pid}/smaps_rollup"), b"\nPss:")
            self.maxrss = max(self.maxrss, field(read(f"/proc/{pid}/status"), b"VmHWM:"))
        self.rss, self.pss = max(self.rss, rss), max(self.pss, pss)
        self.processes = max(self.processes, processes)
        self.samples += 1


def ended(pid):
    """Whether a process has ended and only waits to be reaped."""
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] in ([], [b"Z"])


def kill_rest():
    """Kills and reaps what is left of the tree; returns how many processes were still alive."""
    left = 0
    while rest := children(os.getpid()):
        left += sum(1 for pid in rest if not ended(pid))
        for pid in rest:
            os.kill(pid, signal.SIGKILL)
        for pid in rest:
            os.waitpid(pid, 0)
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--output", help="file for the command's stdout and stderr")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("measure.py: this kernel has no subreapers, so orphans could not be measured")
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(options.output or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    sampler, me, floor = Sampler(), os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    deadline = started + options.timeout
    pid = os.posix_spawnp(options.command[0], options.command, os.environ, file_actions=actions, setpgroup=0)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, options.timeout)
    status = None
    while options.memory and time.monotonic() < deadline:
        sampler.sample(me)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(INTERVAL)
        status = None
    if status is None:
        _, status = os.waitpid(pid, 0)
    wall = time.monotonic() - started
    signal.setitimer(signal.ITIMER_REAL, 0)
    left = kill_rest()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A child starts with the high-water mark of the process that started it, so a value at that floor says nothing.
    kept = usage.ru_maxrss * 1024 if usage.ru_maxrss > floor + 1024 else 0
    print(json.dumps({
        "wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "rc": os.waitstatus_to_exitcode(status), "left": left,
        "rss": max(sampler.rss, sampler.maxrss, kept), "pss": sampler.pss, "maxrss": max(sampler.maxrss, kept),
        "processes": sampler.processes, "samples": sampler.samples,
    }))


if __name__ == "__main__":
    main()
