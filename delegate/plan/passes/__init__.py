"""Passes over a region's graph: functions from graph to graph, which lower nothing."""
