"""`pytest docs/en/order.md` runs the blocks of one chapter as the whole test run does."""

from press.running import pytest_plugin

pytest_configure = pytest_plugin.register
