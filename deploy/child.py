"""A server run as a child process: it dies with its parent, and the end of its log explains a failure.

Spawning and signalling return at once, so they may be called inside an event loop; waiting
(`Child.stop`, `await_answer`) blocks and belongs into `asyncio.to_thread` there. Spawn from the main
thread only: Linux ties the death signal to the thread that forked.
"""

import ctypes
import http.client
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# Below Linux's ephemeral range (32768 up), so that while a server is down no outgoing connection is
# handed the port that it wants back.
PORTS = range(20000, 32000)
_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 4096
_offers = itertools.cycle(random.sample(PORTS, len(PORTS)))
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class ChildFailed(RuntimeError):
    """A child process ended, or did not answer in time; the message carries the end of its log."""


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback TCP ports that nobody listens on, none twice before all were given.

    Another process may take one before its owner binds it: a server that reports the address as in
    use is given others.
    """
    found: list[int] = []
    held: list[socket.socket] = []
    try:
        for port in itertools.islice(_offers, len(PORTS)):
            probe = socket.socket()
            held.append(probe)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    finally:
        for probe in held:
            probe.close()
    raise OSError(f"no {count} free ports in {PORTS.start}-{PORTS.stop - 1} on 127.0.0.1")


def offer(ports: range) -> None:
    """Let `free_ports` choose among these alone: processes that start servers side by side keep apart."""
    global PORTS, _offers
    PORTS, _offers = ports, itertools.cycle(random.sample(ports, len(ports)))


def fetch(port: int, path: str, *, timeout: float = 10.0) -> tuple[int, bytes]:
    """GET a loopback page: (HTTP status, body). Raises OSError when nobody answers. Knows no proxies."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"127.0.0.1:{port}{path}: {error!r}") from error
    finally:
        connection.close()


class Child:
    """One server process that can be killed, paused and started again with the same arguments."""

    def __init__(self, name: str, argv: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.argv = [str(word) for word in argv]
        self.log = log
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = False

    @property
    def pid(self) -> int:
        """The process id; raises ChildFailed when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise ChildFailed(f"{self.name} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """The exit code once it has ended; -9 where it was killed."""
        return None if self._process is None else self._process.poll()

    def spawn(self) -> None:
        """Start the process; its output is appended to the log. Raises ChildFailed if it runs already."""
        if self.running:
            raise ChildFailed(f"{self.name} already runs as process {self.pid}")
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=None if self._env is None else dict(self._env),
                # Ctrl-C on the terminal must reach us first, or the servers vanish under an orderly stop.
                start_new_session=True,
                preexec_fn=_die_with_parent if _LIBC else None,  # noqa: PLW1509 - it takes no lock and allocates nothing
            )
        self._paused = False

    def kill(self) -> None:
        """Kill -9, and reap it. Nothing happens when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, grace: float = 10.0) -> None:
        """Ask it to end, wait up to `grace` seconds, then kill it."""
        if self._process is None:
            return
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open and nobody answers, as in a long stall.

        Returns once its last thread stands still: the signal alone comes back while others still serve.
        """
        self._process_signal(signal.SIGSTOP)
        self._paused = True
        if self.running:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused process go on."""
        if self._paused and self.running:
            self._process_signal(signal.SIGCONT)
        self._paused = False

    def _process_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def tail(self) -> str:
        """The last few kilobytes of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read().decode(errors="replace")

    def failure(self, what: str) -> ChildFailed:
        """An error that says what went wrong and shows how the log ends."""
        return ChildFailed(f"{self.name} {what}\n--- the end of {self.log} ---\n{self.tail()}")

    def await_answer(self, answers: Callable[[], bool], *, what: str, seconds: float) -> None:
        """Block until `answers()` is true. Raises ChildFailed when it ends first, or after `seconds`.

        An OSError in `answers` means "not yet".
        """
        deadline = time.monotonic() + seconds
        last = "nothing"
        while time.monotonic() < deadline:
            if not self.running:
                code = self._process.returncode if self._process else None
                raise self.failure(f"ended with code {code} before it was {what}")
            try:
                if answers():
                    return
                last = "a refusal"
            except OSError as error:
                last = repr(error)
            time.sleep(0.02)
        raise self.failure(f"was not {what} after {seconds:g} s (last answer: {last})")


def _die_with_parent() -> None:
    """Runs in the forked child: no server outlives a test run or a demo that was killed with -9."""
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
