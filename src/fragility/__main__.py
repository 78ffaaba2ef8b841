"""``python -m fragility`` is the command `fragility`."""

from .cli import main

if __name__ == "__main__":
    main()
