"""Checks that judge sources and build products rather than run the library; tests/run_all.py runs them."""
