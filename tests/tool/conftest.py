"""Which tests there are in a build that is not the users' own."""

import harness


def pytest_configure(config):
    config.addinivalue_line("markers", "plain_build: needs the tool as users have it (harness.PLAIN_BUILD); not there otherwise")


def pytest_collection_modifyitems(config, items):
    if harness.PLAIN_BUILD:
        return
    others = [item for item in items if item.get_closest_marker("plain_build")]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
