"""Which view answers which path."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.staticfiles.views import serve
from django.urls import path

from portal import views

urlpatterns = [
    path("", views.index, name="index"),
    path("where", views.where, name="where"),
    path("moved", views.moved, name="moved"),
    path("moved/absolute", views.moved_absolute, name="moved_absolute"),
    path("members", views.members, name="members"),
    path("upload", views.upload, name="upload"),
    path("clock", views.clock, name="clock"),
    path("admin/", admin.site.urls),
    # The admin's style sheets; a front server would serve them itself.
    path("static/<path:path>", serve, {"insecure": True}),
]
