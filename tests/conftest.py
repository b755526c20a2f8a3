"""What every test relies on, set before anything starts Node: one process of it serves all tests."""

import os
import sys
from pathlib import Path

# the validation engine costs seconds in each process; the gates switch it on for one of their own
os.environ["CDK_VALIDATION"] = "false"
# the Node of the virtual environment, not a machine's that may be past its end
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
