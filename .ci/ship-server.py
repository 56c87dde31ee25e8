"""A server that keeps what comes, and refuses or redirects every third request. It writes its port into the file `port`."""
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    requests = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Handler.requests += 1
        if Handler.requests % 3:
            with open("received", "ab") as received:
                received.write(body)
        self.answer(200 if Handler.requests % 3 else 503 if Handler.requests % 2 else 302)
    def do_GET(self):
        self.answer(200)
    def answer(self, status):
        self.send_response(status)
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *what):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open("port.new", "w") as port:
    port.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
