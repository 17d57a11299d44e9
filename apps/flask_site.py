"""An ordinary Flask site: links, redirects, a login, an upload of any size, an answer that takes its time.

``flask --app apps/flask_site.py run`` serves it as well as any WSGI container; it knows of none. Log in with any name
and the password ``flask``.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

from flask import Flask, Response, jsonify, redirect, render_template_string, request, send_file, session, url_for
from markupsafe import Markup

PASSWORD = "flask"
TICKS = 600
TICK = 0.1
"""Seconds between two lines of the clock."""

app = Flask(__name__)
# Every worker has to sign sessions with the same key; without a real one, what is signed is worth nothing.
app.secret_key = os.environ.get("FLASK_SITE_KEY", "for trying things out")

PAGE = """<!DOCTYPE html>
<html lang="en">
<title>{{ title }}</title>
<h1>{{ title }}</h1>
{% if "user" in session %}<p>Logged in as {{ session["user"] }}.
<form method="post" action="{{ url_for('log_out') }}"><button>Log out</button></form>{% endif %}
<p>{% for name in ("index", "where", "moved", "log_in", "members", "upload", "clock", "source") %}
<a href="{{ url_for(name) }}">{{ name }}</a>{% endfor %}
{{ inner }}
</html>
"""
LOGIN = """<form method="post" action="{action}"><input name="name" required> <input type="password" name="password">
<button>Log in</button></form>"""
UPLOAD = """<form method="post" enctype="multipart/form-data">
<input name="title"> <input type="file" name="file" required> <button>Send</button></form>"""


def show(title: str, inner: str = "") -> str:
    """Return a page; ``inner`` is HTML."""
    return render_template_string(PAGE, title=title, inner=Markup(inner))


@app.get("/")
def index() -> str:
    """Links to everything."""
    return show("Flask site")


@app.get("/where")
def where() -> Response:
    """Where the site believes it is."""
    return jsonify(
        {
            "url": request.url,
            "root": request.script_root,
            "path": request.path,
            "link": url_for("where", _external=True),
            "query": request.args.to_dict(),
            "client": request.remote_addr,
        }
    )


@app.get("/moved")
def moved() -> Any:
    """A redirect by path."""
    return redirect(url_for("where", moved="yes"), 301)


@app.get("/moved/absolute")
def moved_absolute() -> Any:
    """A redirect by absolute URL."""
    return redirect(url_for("where", _external=True))


@app.route("/login", methods=["GET", "POST"])
def log_in() -> Any:
    """A form, and who fills it in rightly has a session."""
    if request.method == "POST" and request.form["password"] == PASSWORD:
        session["user"] = request.form["name"]
        return redirect(url_for("members"))
    return show("Log in", LOGIN.format(action=url_for("log_in")))


@app.post("/logout")
def log_out() -> Any:
    """The end of the session."""
    session.clear()
    return redirect(url_for("index"))


@app.get("/members")
def members() -> Any:
    """A page for those who have logged in."""
    return show("Members") if "user" in session else redirect(url_for("log_in"))


@app.route("/upload", methods=["GET", "POST"])
def upload() -> Any:
    """A form with a file, of which the length and the SHA-256 are told."""
    if request.method == "GET":
        return show("Upload", UPLOAD)
    file = request.files["file"]
    digest = hashlib.sha256()
    length = 0
    while piece := file.stream.read(65536):
        digest.update(piece)
        length += len(piece)
    return jsonify(
        {"title": request.form["title"], "name": file.filename, "length": length, "sha256": digest.hexdigest()}
    )


@app.get("/clock")
def clock() -> Response:
    """A line every tenth of a second for a minute."""

    def tick() -> Iterator[str]:
        for number in range(TICKS):
            yield f"tick {number}\n"
            time.sleep(TICK)

    # A front server that collects answers is asked not to.
    return Response(tick(), mimetype="text/plain", headers={"X-Accel-Buffering": "no"})


@app.get("/source")
def source() -> Any:
    """This file."""
    return send_file(__file__, mimetype="text/plain")
