#!/usr/bin/env python3
"""Opens a page of a folder in headless Chromium, with WebGPU by SwiftShader, and keeps what the page puts back.

usage: browser.py CHROMIUM FOLDER PAGE

A page of the folder may write files there by PUT. It ends by a PUT of /done, whose text is that of a failure; empty: there was none.
"""
import functools
import http.server
import pathlib
import subprocess
import sys
import tempfile
import threading

FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
         "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"]
SECONDS = 540


class Server(http.server.SimpleHTTPRequestHandler):
    failure = f"no answer in {SECONDS} s"

    def do_PUT(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/done":
            Server.failure = text.decode()
            threading.Thread(target=self.server.shutdown).start()
        else:
            pathlib.Path(self.translate_path(self.path)).write_bytes(text)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def main(chromium, folder, page):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=folder))
    timer = threading.Timer(SECONDS, server.shutdown)
    timer.start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        url = f"http://127.0.0.1:{server.server_port}/{page}"
        browser = subprocess.Popen([chromium, *FLAGS, f"--user-data-dir={profile}", url], stderr=subprocess.DEVNULL)
        try:
            server.serve_forever()
        finally:
            timer.cancel()
            browser.terminate()
            browser.wait()
    if Server.failure:
        sys.exit(f"{page}: {Server.failure}")


main(*sys.argv[1:])
