"""What tests share."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: idle threads must not spin on a shared machine
