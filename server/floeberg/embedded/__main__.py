"""`python -m floeberg.embedded` is the `floeberg` command."""

from floeberg.embedded.cli import main

if __name__ == "__main__":
    main()
