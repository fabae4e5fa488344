"""Joins and removes TFLite operators after lowering; the only room that may import ``interpreter.ops``."""
