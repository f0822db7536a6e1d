"""The parts of the transcript: rows held as lines, drawn and measured, selected and searched."""
