"""The front desk: admission requests, answered once the decision is durable."""
