"""What every test may rely on."""

import os
import sys
from pathlib import Path

# jsii takes the first Node it finds: the one of the virtual environment, not a machine's that may be past its end
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
