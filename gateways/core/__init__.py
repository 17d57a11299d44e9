"""Data and rules shared by every axis: imports nothing of ours, touches no operating system."""
