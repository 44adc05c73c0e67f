"""`python -m cuolr` is `cuolr`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is being loaded, which takes a moment, is no reason for a traceback."""
    try:
        from cuolr.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
