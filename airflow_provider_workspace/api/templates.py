"""What a Jinja template is."""

import re

# The brace that starts a part of a template. Not compiled here: Dag files import this.
TEMPLATE = r"\{(?=[{%#])"


def template_line(text: str) -> int | None:
    """Return the number of the first line that looks like a template; ``None`` if there is none."""
    found = re.search(TEMPLATE, text)
    return found and text.count("\n", 0, found.start()) + 1
