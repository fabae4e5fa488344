"""Tests that some environments skip."""

import os

import pytest

as_itself = pytest.mark.skipif("LITECL_AS_CPU" in os.environ, reason="as_cpu.sh stands in for what this tests")
