"""Why the panel does not start: said in one sentence, without a traceback."""


class CannotStart(Exception):
    """The machine or its configuration does not allow a start; the message tells the person what to do."""
