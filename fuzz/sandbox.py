"""A child process that reads one damaged file after the other, within limits of time and memory.

A child is forked once and serves many cases, because starting Python takes longer than reading a small file; a case
that ends it, or that takes too long, costs only this child. The parent computes nothing with polars or torch, whose
threads would not survive the fork.
"""

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Literal, Self, TypeAlias

from cuolr.errors import InputError, InputWarning
from fuzz.cases import Case, Choices
from fuzz.kinds.all import KINDS

Verdict: TypeAlias = Literal["refused", "noted", "equal", "other", "crash", "hang", "memory", "traceback"]

# What a file of some kilobytes may take.
MAX_CPU_SECONDS, MAX_BYTES = 2.0, 500 << 20
# The child is ended if it did nothing for this time. One that waits for its turn on a busy machine does something.
MAX_IDLE_SECONDS = 30.0
# Beyond it, the operating system refuses memory.
MAX_ADDRESS_SPACE = 8 << 30
# A child is replaced after so many cases, so that what one leaves behind does not burden the next for long.
CASES_OF_A_CHILD = 2_000

# Of polars, which is written in Rust: it notes on stderr what it did not expect, beside the error that it raises.
PANIC = "panicked at"

_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Outcome:
    """What became of a case: the verdict, what the reader said, and what it took."""

    verdict: Verdict
    text: str = ""
    seconds: float = 0.0


class Sandbox:
    """The child that reads the cases of one kind, replaced by a new one as often as needed.

    Attributes:
        kind: The name of the kind.
        examples: The folder of its examples; made by the first child.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self._process: ForkProcess | None = None
        self._pipe: Connection | None = None
        self._served = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, case: Case) -> Outcome:
        """Damage an example as the case says, and read it."""
        if self._process is None or self._served >= CASES_OF_A_CHILD:
            self._start()
        assert self._process is not None
        assert self._pipe is not None
        self._served += 1
        start = self._cpu_seconds()
        self._pipe.send(case)
        try:
            if self._answers(start):
                outcome: Outcome = self._pipe.recv()
                if outcome.verdict == "memory":
                    self._end()
                return outcome
            taken = self._cpu_seconds() - start
            self._end()
            return Outcome("hang", f"no answer, {taken:.1f} s of CPU")
        except EOFError:
            self._process.join()
            code = self._process.exitcode or 0
            self._process = None
            return Outcome("crash", signal.Signals(-code).name if code < 0 else f"exit status {code}")

    def _answers(self, start: float) -> bool:
        """Wait for the child, as long as it computes and has not had more than its time."""
        assert self._pipe is not None
        before = start
        while not self._pipe.poll(MAX_IDLE_SECONDS):
            now = self._cpu_seconds()
            if now - start > MAX_CPU_SECONDS or now == before:
                return False
            before = now
        return True

    def _cpu_seconds(self) -> float:
        """What the child has computed so far, in all of its threads."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _start(self) -> None:
        self._end()
        self._pipe, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_serve, args=(self.kind, self.folder, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._served = 0
        try:
            ready = self._pipe.poll(300) and self._pipe.recv()
        except EOFError:
            ready = False
        if not ready:
            raise RuntimeError(f"{self.kind}: its examples cannot be made or read; see above")

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = None


def _serve(kind: str, folder: Path, pipe: Connection) -> None:
    """Read cases until the parent is gone."""
    examples = folder / "examples"
    try:
        if not examples.exists():
            examples.mkdir(parents=True)
            KINDS[kind].make(examples)
        known = {example.name: KINDS[kind].read(_copied(example, folder / "work")) for example in _folders(examples)}
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    pipe.send("ready")
    os.environ["RUST_BACKTRACE"] = "0"
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        while True:
            try:
                case = pipe.recv()
            except EOFError:
                os._exit(0)
            pipe.send(_outcome(case, folder, known, said.fileno()))


def _outcome(case: Case, folder: Path, known: dict[str, str], said: int) -> Outcome:
    kind, choices = KINDS[case.kind], Choices(case.numbers)
    example = choices.one_of(sorted(known))
    work = _copied(folder / "examples" / example, folder / "work")
    kind.damage(work, case.damages, choices)
    os.ftruncate(said, 0)
    os.lseek(said, 0, os.SEEK_SET)
    _forget_peak()
    before, start = _resident("VmRSS"), time.process_time()
    verdict, text = _read(case, work, known[example])
    seconds = time.process_time() - start
    printed = os.pread(said, 2_000, 0).decode(errors="replace")
    if seconds > MAX_CPU_SECONDS:
        return Outcome("hang", f"{seconds:.1f} s of CPU ({verdict}: {text[:500]})", seconds)
    if (peak := _resident("VmHWM") - before) > MAX_BYTES:
        return Outcome("memory", f"{peak >> 20} MB ({verdict}: {text[:500]})", seconds)
    if verdict == "refused" and PANIC in printed:
        return Outcome("noted", text, seconds)
    if printed and verdict != "traceback":
        return Outcome("traceback", f"printed: {printed} ({verdict}: {text[:500]})", seconds)
    return Outcome(verdict, text, seconds)


def _read(case: Case, work: Path, expected: str) -> tuple[Verdict, str]:
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            found = KINDS[case.kind].read(work)
    except InputError as error:
        return "refused", error.problems[0][:300]
    except BaseException:
        return "traceback", traceback.format_exc()[-3_000:]
    others = [str(warning.message) for warning in given if not issubclass(warning.category, InputWarning)]
    if others:
        return "traceback", f"a warning that is not about the input: {others[0]}"
    return ("equal" if found == expected else "other"), ""


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _copied(example: Path, work: Path) -> Path:
    shutil.rmtree(work, ignore_errors=True)
    return Path(shutil.copytree(example, work))


def _forget_peak() -> None:
    """Start anew with the peak of resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def _resident(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10
