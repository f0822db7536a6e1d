"""Servers of the Model Context Protocol: their tools become tools of the agent (rule AG-4). Loads the protocol's library only when one is used."""
