"""These tests need an environment of their own: they run only where they are asked for by name."""


def pytest_ignore_collect(collection_path, config):
    asked_for = any("interop" in str(argument) for argument in config.args)
    return None if asked_for else True
