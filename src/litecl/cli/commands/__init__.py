"""The subcommands, one module each, found by the parser: ``HELP``, ``arguments(parser)`` and ``run(args)``."""
