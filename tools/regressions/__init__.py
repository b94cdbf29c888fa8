"""The acceptance runner's parts; tools/run_gradient_guard_regressions.py is the program."""
