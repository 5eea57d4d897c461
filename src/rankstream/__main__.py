"""``python -m rankstream`` is the command line."""

from rankstream.cli import main

if __name__ == "__main__":
    main()
