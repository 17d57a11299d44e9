"""What the scripts of this folder share."""

last_user = ""
pages = 0


def greet(user):
    """Return a greeting."""
    global last_user
    last_user = user  # leak
    return f"Hello, {user}"
