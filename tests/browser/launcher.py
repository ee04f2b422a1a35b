"""Serves the page with scripted models, and their pass counters on a second port: python -m tests.browser.launcher PORT COUNTER."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from app.engine import make_engine
from app.runner import Runner
from app.runs import Runs
from app.server import serve
from tests.browser.scripted import scripted_models, scripted_pair


def main(port: int, counter_port: int) -> None:
    pair = scripted_pair()

    class Counter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"target": pair.target.passes, "draft": pair.draft.passes}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    Thread(target=ThreadingHTTPServer(("127.0.0.1", counter_port), Counter).serve_forever, daemon=True).start()
    models, runs = scripted_models(pair), Runs()
    serve(Runner(models, runs, make_engine(models, runs)), server_name="127.0.0.1", server_port=port)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
