"""The machinery that runs agents on a session: durable tasks, generations, tools, and the view of it all."""
