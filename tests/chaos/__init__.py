"""A fleet that is killed, an object store that fails, and clients whose every answer is checked."""
