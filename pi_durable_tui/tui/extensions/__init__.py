"""What extensions and MCP servers bring to the app."""
