"""Measures a model and gathers what a report tells of it. No drawing."""

from litecl.perf.report.collect.report import Wanted, collect

__all__ = ["Wanted", "collect"]
