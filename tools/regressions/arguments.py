"""Kinds of arguments for argparse, which the runner and the Python benchmarks take: what is wrong is known before anything
runs."""

import argparse


def at_least(least):
    def parse(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least}")
        return int(text)

    return parse


def output_file(path):
    """What is in the file already stays until there is something to write."""
    try:
        with open(path, "a", encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be written: {error.strerror}") from None
