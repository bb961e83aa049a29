"""The two phases of a connector between and during runs, in a module that executors may import."""

from __future__ import annotations

COPYING, CLOSED = "copying", "closed"
