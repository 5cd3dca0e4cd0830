"""`pytest docs/en/order.md` runs the blocks of one chapter as the whole test run does."""

import blocktests

blocktests.install()
