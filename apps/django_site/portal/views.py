"""The pages."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

TICKS = 600
TICK = 0.1
"""Seconds between two lines of the clock."""


class UploadForm(forms.Form):
    """A file and its title."""

    title = forms.CharField()
    file = forms.FileField()


def index(request: HttpRequest) -> HttpResponse:
    """Links to everything."""
    return render(request, "page.html", {"title": "Django site"})


def where(request: HttpRequest) -> HttpResponse:
    """Where the site believes it is."""
    return JsonResponse(
        {
            "url": request.build_absolute_uri(),
            "root": request.META["SCRIPT_NAME"],
            "path": request.path_info,
            "link": request.build_absolute_uri(reverse("where")),
            "query": request.GET.dict(),
            "client": request.META["REMOTE_ADDR"],
        }
    )


def moved(request: HttpRequest) -> HttpResponse:
    """A redirect by path."""
    return HttpResponsePermanentRedirect(reverse("where") + "?moved=yes")


def moved_absolute(request: HttpRequest) -> HttpResponse:
    """A redirect by absolute URL."""
    return redirect(request.build_absolute_uri(reverse("where")))


@login_required
def members(request: HttpRequest) -> HttpResponse:
    """A page for those who have logged in."""
    return render(request, "page.html", {"title": "Members"})


def upload(request: HttpRequest) -> HttpResponse:
    """A form with a file, of which the length and the SHA-256 are told."""
    form = UploadForm(request.POST or None, request.FILES or None)
    if not form.is_valid():
        return render(request, "page.html", {"title": "Upload", "form": form}, status=400 if form.is_bound else 200)
    file = form.cleaned_data["file"]
    digest = hashlib.sha256()
    for piece in file.chunks():
        digest.update(piece)
    return JsonResponse(
        {
            "title": form.cleaned_data["title"],
            "name": file.name,
            "length": file.size,
            "sha256": digest.hexdigest(),
        }
    )


def clock(request: HttpRequest) -> StreamingHttpResponse:
    """A line every tenth of a second for a minute."""

    def tick() -> Iterator[str]:
        for number in range(TICKS):
            yield f"tick {number}\n"
            time.sleep(TICK)

    # A front server that collects answers is asked not to.
    return StreamingHttpResponse(tick(), content_type="text/plain", headers={"X-Accel-Buffering": "no"})
