"""python -m posenc.rotary config.json: what a configuration means, in words and numbers."""

import argparse
import sys

from posenc.rotary.config import described, from_config

# What an error calls an argument, as it is written here.
_OPTIONS = {
    "handled": "FIELD, once for each of these fields",
    "layout": "half, or --layout interleaved",
    "length": "TOKENS",
    "part": "NAME",
}


def main(arguments: list[str] | None = None) -> int:
    """Prints what the file says; 2 if it cannot be read, with the reason in a line."""
    parser = argparse.ArgumentParser(prog="python -m posenc.rotary", description=__doc__)
    parser.add_argument("config", help="a config.json of Hugging Face's transformers")
    parser.add_argument("--part", help="which configuration of several in one file, vision_config")
    parser.add_argument("--length", type=int, help="tokens of the present text, for dynamic NTK and LongRoPE")
    parser.add_argument(
        "--layout", choices=["half", "interleaved"], help="for a model_type that posenc does not know"
    )
    parser.add_argument(
        "--handled",
        action="append",
        default=[],
        metavar="FIELD",
        help="a field that you see to; may be repeated",
    )
    given = parser.parse_args(arguments)
    try:
        found = from_config(
            given.config,
            part=given.part,
            layout=given.layout,
            length=given.length,
            handled=tuple(given.handled),
        )
    except (OSError, TypeError, ValueError) as error:
        print(f"{given.config}: {error}", file=sys.stderr)
        for option, value in _OPTIONS.items():
            if f"pass {option}" in str(error):
                print(f"on the command line: --{option} {value}", file=sys.stderr)
        return 2
    print(*described(found), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
