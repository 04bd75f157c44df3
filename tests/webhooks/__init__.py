"""The front desk: reviews in, answers out, whatever happens on the way."""
