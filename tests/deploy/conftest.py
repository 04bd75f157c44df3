"""What tests of the composition root share."""

from tests.deploy.logs import demo_log

__all__ = ["demo_log"]
