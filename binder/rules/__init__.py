"""The rules that speak to tenants: pure, from a request and its evidence alone."""
