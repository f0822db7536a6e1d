"""The parts of the composer that know no widget: what was killed, what stands at the cursor."""
