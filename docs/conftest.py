"""`pytest docs/en/order.md` runs the blocks of one chapter as the whole test run does."""

from book import blocktests

pytest_configure = blocktests.register
