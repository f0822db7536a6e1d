"""How models are reached: the gateway over LiteLLM, and the model of a recorded session."""
