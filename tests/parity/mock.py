"""Starts mock.mjs, the scripted model, on a free loopback port."""
import signal
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Mock:
    """A context manager: `with Mock(script, log) as mock: mock.url`."""

    def __init__(self, script: Path, log: Path):
        self.command = ["node", str(HERE / "mock.mjs"), "0", str(script), str(log)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        # The server prints its port once it listens.
        line = self.process.stdout.readline()
        if not line.startswith("mock on "):
            raise RuntimeError(f"the mock model did not start: {line!r}")
        self.url = f"http://127.0.0.1:{int(line.split()[-1])}/v1"
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
