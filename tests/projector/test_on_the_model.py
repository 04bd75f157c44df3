"""The projector keeps its promises on the model API server."""

from tests.projector.promises import *  # noqa: F403 - each promise is a test of this module
