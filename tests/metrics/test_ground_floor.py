"""The ground floor stands on NumPy alone."""

from __future__ import annotations

import subprocess
import sys


def test_formulas_import_numpy_and_nothing_else() -> None:
    """A process that imports metrics and remedies has loaded neither torch nor the wire."""
    program = (
        "import sys, rlvitals.metrics, rlvitals.remedies; "
        "print([name for name in ('torch', 'msgspec', 'urllib3', 'scipy', 'pandas', "
        "'rlvitals.records') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
