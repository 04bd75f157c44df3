"""The program seen from outside: metrics, the dashboard and the alerts that are drawn from them."""
