"""A WSGI application for the life cycle of another server's workers: who answers, and a request that lasts."""

import os


def block(start_response):
    """Say that the request runs, and wait until somebody opens the gate."""
    folder = os.environ["GUEST_FOLDER"]
    with open(f"{folder}/running", "a") as file:
        file.write(f"{os.getpid()}\n")
    with open(f"{folder}/gate", "rb") as gate:
        gate.read()
    return reply(start_response, "done")


def swallow(start_response):
    """The same, by an application that lets nothing end it."""
    for _ in range(2):
        try:
            return block(start_response)
        except BaseException:  # noqa: BLE001 - that is what is tried here
            continue
    return reply(start_response, "swallowed")


def reply(start_response, text):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]


def application(environ, start_response):
    page = environ["PATH_INFO"]
    if page == "/block":
        return block(start_response)
    if page == "/swallow":
        return swallow(start_response)
    if page == "/mode":
        return reply(start_response, environ["GATEWAYS_MODE"])
    return reply(start_response, str(os.getpid()))
