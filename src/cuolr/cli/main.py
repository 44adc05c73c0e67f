"""The command line: commands in groups. Bad input gives one line per problem on stderr and exit status 2."""

import io
import os
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TextIO

import tyro

import cuolr
from cuolr.cli.check_arguments import check_command
from cuolr.cli.help import Command, command_help, overview
from cuolr.cli.terminal import say
from cuolr.errors import InputError, InputWarning
from cuolr.output_lock import outputs_held
from cuolr.registry import did_you_mean

DESCRIPTION = "Learn to rank documents from click logs, whatever the click model."
GROUPS: Mapping[str, Mapping[str, Command]] = {
    "Your log": {
        "import-log": Command(
            "cuolr.cli.import_log:import_log",
            "check a click log and make it ready for training",
            "cuolr import-log clicks.csv --features features.parquet --out LOG",
        ),
        "merge-logs": Command(
            "cuolr.cli.merge_logs:merge_logs",
            "merge click logs, such as those of the last four weeks",
            "cuolr merge-logs WEEK_1 WEEK_2 --keep-days 28 --out LOG",
        ),
        "count": Command(
            "cuolr.cli.count:count",
            "count the equal sessions of a very large log",
            "cuolr count LOG --out COUNTS",
        ),
        "delete-sessions": Command(
            "cuolr.cli.delete_sessions:delete_sessions",
            "delete a person's sessions; list models that had them",
            "cuolr delete-sessions LOG --user-id 4711 --models MODELS",
        ),
        "log-info": Command(
            "cuolr.cli.log_info:log_info",
            "describe a click log; is position bias identifiable?",
            "cuolr log-info LOG",
        ),
        "propensity": Command(
            "cuolr.cli.propensity:propensity",
            "show or estimate the examination probability by position",
            "cuolr propensity LOG --plot examination.svg",
        ),
        "fit-clicks": Command(
            "cuolr.cli.fit_clicks:fit_clicks",
            "fit click models to a log; which explains it best?",
            "cuolr fit-clicks LOG --out users.toml",
        ),
        "judgments": Command(
            "cuolr.cli.judgments:judgments",
            "rate documents by clicks, to evaluate a search engine",
            "cuolr judgments LOG --out judgments.json",
        ),
    },
    "Models": {
        "train": Command(
            "cuolr.cli.train:train",
            "train a ranking model from a click log",
            "cuolr train LOG --out MODEL",
        ),
        "rank": Command(
            "cuolr.cli.rank:rank",
            "rank documents with a model",
            "cuolr rank MODEL --candidates documents.parquet --out rankings.csv",
        ),
        "serve": Command(
            "cuolr.cli.serve:serve",
            "rank over HTTP, and log what is shown and clicked",
            "cuolr serve MODEL --log SERVED",
        ),
        "interleaving": Command(
            "cuolr.cli.interleaving:interleaving",
            "which of two models do users of a service prefer?",
            "cuolr interleaving SERVED",
            reads_saved=False,
        ),
        "distil": Command(
            "cuolr.cli.distil:distil",
            "make one fast model that ranks as a slower one does",
            "cuolr distil MODEL --data LOG --to trees --out STUDENT",
        ),
        "assess": Command(
            "cuolr.cli.assess:assess",
            "estimate from a click log whether to ship, test or keep",
            "cuolr assess MODEL NEXT_WEEKS_LOG",
        ),
        "browse": Command(
            "cuolr.cli.browse:browse",
            "show what a model would change, on a local page",
            "cuolr browse MODEL NEXT_WEEKS_LOG",
        ),
        "explain": Command(
            "cuolr.cli.explain:explain",
            "show what a model would change for a query, and why",
            "cuolr explain MODEL NEXT_WEEKS_LOG --query shoes",
        ),
        "evaluate": Command(
            "cuolr.cli.evaluate:evaluate",
            "evaluate a model on labelled queries",
            "cuolr evaluate MODEL --data MSLR-WEB10K --measures ndcg@10,err@10",
        ),
        "compare": Command(
            "cuolr.cli.compare:compare",
            "compare models on labelled queries, with significance tests",
            "cuolr compare MODEL_A MODEL_B --data MSLR-WEB10K",
        ),
        "export": Command(
            "cuolr.cli.export:export",
            "export a model to a search engine, ONNX or a tree library",
            "cuolr export MODEL --to onnx --out model.onnx",
        ),
    },
    "Experiments": {
        "demo": Command(
            "cuolr.cli.demo:demo",
            "run a small experiment on generated data, in minutes",
            "cuolr demo --out demo",
        ),
        "experiment": Command(
            "cuolr.cli.experiment:experiment",
            "run an experiment: learners on the same simulated logs",
            "cuolr experiment table1 --data MSLR-WEB10K --out RESULTS",
        ),
        "report": Command(
            "cuolr.cli.report:report",
            "report the results of an experiment: page, tables, plots",
            "cuolr report RESULTS",
        ),
        "pack": Command(
            "cuolr.cli.pack:pack",
            "pack the results of an experiment into one Parquet file",
            "cuolr pack RESULTS results.parquet",
        ),
        "tune": Command(
            "cuolr.cli.tune:tune",
            "search the settings of learners on simulated logs",
            "cuolr tune sac cql --data MSLR-WEB10K --out TUNED",
        ),
        "optimality": Command(
            "cuolr.cli.optimality:optimality",
            "test if sorting by attractiveness maximises expected clicks",
            "cuolr optimality --click-model ubm",
            reads_saved=False,
        ),
    },
    "Data": {
        "list": Command(
            "cuolr.cli.list:list_names",
            "list data sets, click models, learners and their settings",
            "cuolr list learners",
            reads_saved=False,
        ),
        "inspect": Command(
            "cuolr.cli.inspect:inspect",
            "describe a labelled data set",
            "cuolr inspect MSLR-WEB10K --fold 1",
            reads_saved=False,
        ),
        "generate": Command(
            "cuolr.cli.generate:generate_folder",
            "generate a labelled data set",
            "cuolr generate web10k-like --out DATA",
            reads_saved=False,
        ),
        "simulate": Command(
            "cuolr.cli.simulate:simulate",
            "simulate a click log on a labelled data set",
            "cuolr simulate --data DATA --click-model pbm --sessions 100000 --out LOG",
        ),
        "clean": Command(
            "cuolr.cli.clean:clean",
            "remove unfinished files that killed commands left",
            "cuolr clean RESULTS",
            reads_saved=False,
        ),
        "oracle": Command(
            "cuolr.cli.oracle:oracle",
            "train on the true labels: a reference for other models",
            "cuolr oracle --data DATA --out ORACLE",
            reads_saved=False,
        ),
    },
}
COMMANDS: Mapping[str, Command] = {name: command for group in GROUPS.values() for name, command in group.items()}
# Flags are --x, without --no-x; options of a dataclass have no prefix; "None" is not accepted as a value.
PARSING = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
# Lines that say what is wrong, such as one for each column.
MAX_PROBLEMS = 50
SHELLS = ("bash", "zsh", "fish")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that lack a character
    # Unfinished files are removed, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", InputWarning)
            warnings.showwarning = _show_warning
            with outputs_held():
                status = _run(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
    except InputError as error:
        for problem in error.problems[:MAX_PROBLEMS]:
            say(f"error: {problem}")
        if len(error.problems) > MAX_PROBLEMS:
            say(f"error: {len(error.problems) - MAX_PROBLEMS:,} more problems like these")
        sys.exit(2)
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
    except BrokenPipeError:
        _forget_output()
        sys.exit(1)
    except MemoryError as error:
        say(f"error: not enough memory: {error}" if str(error) else "error: not enough memory")
        sys.exit(2)
    except OSError as error:
        say(f"error: {error.filename or 'output'}: {error.strerror or error}")
        _forget_output()
        sys.exit(2)
    if status:
        sys.exit(status)


def _run(arguments: list[str]) -> int | None:
    """Run a command and return its exit status, or print help, version or completion script."""
    match arguments:
        case [] | ["-h" | "--help", *_] | ["help"]:
            print(overview(DESCRIPTION, GROUPS))
        case ["--version"]:
            print(f"cuolr {cuolr.__version__}")
        case ["--completion", shell] if shell in SHELLS:
            verbs = {name: command.load() for name, command in COMMANDS.items()}
            tyro.extras.subcommand_cli_from_dict(
                verbs, prog="cuolr", args=["--tyro-print-completion", shell], config=PARSING
            )
        case ["--completion", *shell]:
            found = f"'{shell[0]}'" if shell else "none"
            raise InputError(f"--completion: expected a shell, {', '.join(SHELLS)}, found {found}")
        case ["help", name]:
            return _run([name, "--help"])
        case [name, *_] if name not in COMMANDS:
            raise InputError(f"unknown command '{name}'{did_you_mean(name, COMMANDS)}; `cuolr --help` lists all")
        case [name, *rest] if {"-h", "--help"} & set(rest):
            print(command_help(name, COMMANDS[name].load(), COMMANDS[name].example))
        case [name, *rest]:
            run = COMMANDS[name].load()
            check_command(name, run, rest)
            return tyro.cli(run, prog=f"cuolr {name}", args=rest, config=PARSING)
    return None


def _forget_output() -> None:
    """Discard further output, so that Python does not report the closed pipe again at exit."""
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
