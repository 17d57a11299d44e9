#!/usr/bin/env python3
# ruff: noqa: UP031 - written as in 2005
"""The guest book, in the manner of 2005: one file, the cgi module, a data file beside it."""

import cgi
import cgitb
import os
import time

cgitb.enable()

DATA = os.environ.get("GUESTBOOK", "guestbook.txt")
PAGE = """Content-Type: text/html; charset=utf-8

<html><head><title>Guest book</title></head>
<body bgcolor="#ffffff">
<h1>Guest book</h1>
%(message)s
<form method="post" action="%(action)s">
Your name: <input name="name" size="30"><br>
<textarea name="text" rows="4" cols="40"></textarea><br>
<input type="submit" value="Sign">
</form>
<hr>
%(entries)s
</body></html>"""


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def read_entries():
    if not os.path.exists(DATA):
        return []
    with open(DATA) as file:
        return [line.rstrip("\n").split("\t") for line in file]


def add_entry(name, text):
    with open(DATA, "a") as file:
        file.write("%s\t%s\t%s\n" % (time.strftime("%Y-%m-%d"), name, " ".join(text.split())))


form = cgi.FieldStorage()
message = ""
if "name" in form and "text" in form:
    add_entry(form["name"].value, form["text"].value)
    message = "<p><b>Thank you, %s!</b></p>" % escape(form.getfirst("name"))
elif os.environ["REQUEST_METHOD"] == "POST":
    message = "<p>Please fill in both fields.</p>"
rows = ["<p><b>%s</b> (%s)<br>%s</p>" % (escape(n), d, escape(t)) for d, n, t in reversed(read_entries())]
print(PAGE % {"message": message, "action": os.environ["SCRIPT_NAME"], "entries": "\n".join(rows) or "Nobody yet."})
