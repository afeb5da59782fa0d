"""A running `pillarbox` for the Python scripts beside this file, and the report that they all give.

Every process gets a directory and an environment of its own, so that no configuration of this machine reaches it, and
is stopped as an operator would: with SIGTERM, which has to end in exit code 0.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import urllib.error
import urllib.request

BINARY = os.environ["CLIENTS_BINARY"]
PATIENCE_S = 15
# What every process gets of the environment; secrets come on top.
BARE = {name: value for name, value in os.environ.items() if name in ("HOME", "PATH", "TMPDIR", "RUST_BACKTRACE")}


class Pillarbox:
    """One installation of `pillarbox` in a folder of its own; while it runs it is spoken to at `url`."""

    def __init__(self, verb, *arguments, secrets=None, listen="127.0.0.1:0"):
        self._folder = tempfile.TemporaryDirectory(prefix=f"{verb}-")
        self.folder = pathlib.Path(self._folder.name)
        self.data = self.folder / "data"
        self._verb = verb
        self._line = [BINARY, verb, "--data-dir", self.data, "--listen", listen, *arguments]
        self._env = BARE | (secrets or {})
        self._log = open(self.folder / "log", "wb")
        self._process = None
        self.start()

    @classmethod
    def dev(cls, *arguments):
        return cls("dev", "--no-demo", "--ready-file", "ready.json", *arguments)

    @classmethod
    def fake(cls):
        return cls("fake", "--ready-file", "ready.json")

    @classmethod
    def serve(cls, *settings, listen="127.0.0.1:0", **secrets):
        words = (word for setting in settings for word in ("--set", setting))
        return cls("serve", *words, secrets=secrets, listen=listen)

    def start(self):
        """Starts it and waits until it is ready."""
        (self.folder / "ready.json").unlink(missing_ok=True)
        self._process = subprocess.Popen(
            self._line, cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        # The production mode tells its address in its log only.
        told = self._announced if self._verb == "serve" else self._ready_file
        try:
            self.ready = eventually("pillarbox to be ready", lambda: self._process.poll() is not None or told())
            assert self._process.poll() is None, f"pillarbox ended at once:\n{self.log()}"
        except AssertionError:
            self.close()
            raise
        self.url = self.ready["url"]

    def _ready_file(self):
        path = self.folder / "ready.json"
        return path.exists() and json.loads(path.read_text())

    def _announced(self):
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return next((line for line in lines if line["message"] == "pillarbox is serving"), None)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def run(self, *words, stdin=""):
        """A command of the CLI beside this server; returns its standard output."""
        line = [BINARY, *words, "--data-dir", self.data]
        done = subprocess.run(
            line, cwd=self.folder, env=BARE, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, f"pillarbox {words} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def call(self, method, path, body=None, secret=None):
        """An HTTP request; returns the status and the JSON that was answered. Bytes are sent as they are."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    def stop(self):
        """Stops it in order, and fails if it does not end well."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=PATIENCE_S)
        assert code == 0, f"pillarbox ended with {code}:\n{self.log()}"

    def close(self):
        """Stops it if it runs, and removes its folder."""
        try:
            if self._process.poll() is None:
                self.stop()
        finally:
            self._process.kill()
            self._process.wait()
            self._log.close()
            self._folder.cleanup()


def eventually(what, look, within_s=PATIENCE_S):
    """Asks again until `look` answers something true, and returns that."""
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s} s in vain for {what}")
        time.sleep(0.02)


class Tap(unittest.TestResult):
    """Says each test as a sentence, in the form that `run` counts."""

    def addSuccess(self, test):
        super().addSuccess(test)
        print("ok -", _sentence(test), flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print("ok -", _sentence(test), "# SKIP", reason, flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say_failed(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self._say_failed(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._say_failed(test, error)

    def _say_failed(self, test, error):
        print("not ok -", _sentence(test))
        for line in "".join(traceback.format_exception(*error)).splitlines():
            print("   #", line, flush=True)


def _sentence(test):
    return getattr(test, "_testMethodName", str(test)).removeprefix("test_").replace("_", " ")


def main():
    """Runs the tests of the script. SIGTERM becomes an exception, so that what was started is stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by a signal"))
    result = Tap()
    unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]).run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
