"""What every process brings with it: storage, the HTTP side port, logging, configuration."""
