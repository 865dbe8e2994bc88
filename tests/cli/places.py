"""Where the project and the binary under test are."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("STOKER_BIN", ROOT / "build" / "stoker")).resolve()
