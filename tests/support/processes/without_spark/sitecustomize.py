"""Python runs this at its start when the folder is on PYTHONPATH: a run may have its tasks in its driver's process."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import engine_choice

engine_choice.install()
