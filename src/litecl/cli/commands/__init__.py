"""The subcommands, one module each, found by the parser. Each defines HELP, EXAMPLES, ``arguments`` and ``run``."""
