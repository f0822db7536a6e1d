"""A request to a model and the answer to it, as values: the context that is sent, the pieces that come, the wait after a failure."""
