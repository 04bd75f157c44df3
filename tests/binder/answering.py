"""A function that answers the same to everything: the plainest fault there is."""

from collections.abc import Callable


def answering(*, returned: object) -> Callable[..., object]:
    """Return a function that returns this whatever it is asked."""

    def answer(*_: object) -> object:
        return returned

    return answer
