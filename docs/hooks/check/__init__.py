"""All checks of the sources, one command: `python docs/hooks/check`."""
