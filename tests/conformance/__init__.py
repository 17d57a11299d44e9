"""The conformance table: one list of behaviours, held against any server that serves ``apps/conformance.py``.

``python -m tests.conformance URL ...`` runs it. Nothing here imports ``gateways``.
"""
