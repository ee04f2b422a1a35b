"""The page: it reads steps and traces, and never touches a tensor."""

import app.surroundings  # noqa: F401 - comes first: gradio and torch must find the process prepared
