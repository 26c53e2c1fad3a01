"""`python -m counterpoint` is the command line."""

from counterpoint.cli.main import main

if __name__ == "__main__":
    main()
