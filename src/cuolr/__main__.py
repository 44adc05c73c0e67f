"""`python -m cuolr` is `cuolr`."""

from cuolr.cli import main

if __name__ == "__main__":
    main()
