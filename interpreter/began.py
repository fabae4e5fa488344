"""When this process began to import litecl, whose files may change later (``delegate/own_code.py``)."""

import time

IMPORTED_NS = time.time_ns()
