"""The command line: verbs only. Bad input gives one line per problem on stderr and exit status 2."""

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TextIO

import tyro

from cuolr.cli.assess import assess
from cuolr.cli.compare import compare
from cuolr.cli.demo import demo
from cuolr.cli.evaluate import evaluate
from cuolr.cli.experiment import experiment
from cuolr.cli.generate import generate_folder
from cuolr.cli.import_log import import_log
from cuolr.cli.inspect import inspect
from cuolr.cli.list import list_names
from cuolr.cli.log_info import log_info
from cuolr.cli.optimality import optimality
from cuolr.cli.oracle import oracle
from cuolr.cli.propensity import propensity
from cuolr.cli.rank import rank
from cuolr.cli.report import report
from cuolr.cli.simulate import simulate
from cuolr.cli.terminal import say
from cuolr.cli.train import train
from cuolr.cli.tune import tune
from cuolr.errors import InputError, InputWarning

COMMANDS: dict[str, Callable[..., None]] = {
    "assess": assess,
    "compare": compare,
    "demo": demo,
    "evaluate": evaluate,
    "experiment": experiment,
    "generate": generate_folder,
    "import-log": import_log,
    "inspect": inspect,
    "list": list_names,
    "log-info": log_info,
    "optimality": optimality,
    "oracle": oracle,
    "propensity": propensity,
    "rank": rank,
    "report": report,
    "simulate": simulate,
    "train": train,
    "tune": tune,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Learning to rank from click logs, whatever the click model."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows another
    # As with Ctrl-C, what is unfinished is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    config = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", InputWarning)
            warnings.showwarning = _show_warning
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS, prog="cuolr", description=main.__doc__, args=arguments, config=config
            )
            sys.stdout.flush()
    except InputError as error:
        for problem in error.problems:
            say(f"error: {problem}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
    except BrokenPipeError:
        _forget_output()
        sys.exit(1)
    except OSError as error:
        say(f"error: {error.filename or 'output'}: {error.strerror or error}")
        _forget_output()
        sys.exit(2)


def _forget_output() -> None:
    """Nobody takes our output any more; Python would complain once more when it flushes at exit."""
    output = sys.__stdout__
    if output is not None and sys.stdout is output:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, InputWarning):
        say(f"warning: {message}")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


if __name__ == "__main__":
    main()
