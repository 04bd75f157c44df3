"""Alerts and dashboard: each alert fires where it must, on Prometheus' own engine, and every query finds its metric."""
